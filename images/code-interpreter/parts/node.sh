# Node with npm, and tslab: one kernel program for typescript and javascript.
source /recipe/lib/steps.sh

install_packages nodejs
fetch "https://registry.npmjs.org/npm/-/npm-$npm_version.tgz" "$npm_sha256" /tmp/npm.tgz
mkdir -p /usr/local/lib/node_modules/npm
tar -xzf /tmp/npm.tgz --no-same-owner --strip-components=1 -C /usr/local/lib/node_modules/npm
rm -rf /usr/local/lib/node_modules/npm/{docs,man}
ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx

home=/usr/local/lib/code-interpreter
mkdir -p $home
cp /recipe/node/package.json /recipe/node/package-lock.json $home/
# No script of any package runs: zeromq brings its compiled part along.
(cd $home && npm ci --ignore-scripts --no-audit --no-fund --omit=dev --cache /tmp/npm-cache)

# What other systems would need, and what a compiler would.
modules=$home/node_modules
find "$modules/zeromq/build" -name addon.node \( ! -path "*/linux/$(node -p process.arch)/*" -o -path '*musl*' \) -delete
find "$modules/zeromq/build" -type d -empty -delete
find "$modules/cmake-ts" -type f ! -name package.json ! -name 'loader.*' -delete
rm -rf "$modules/node-addon-api" "$modules/zeromq"/{src,script,CMakeLists.txt,vcpkg.json}
find "$modules" \( -name '*.map' -o -name '*.md' -o -name '*.markdown' \) -type f -delete
# tslab looks for the types of node below itself, npm puts them beside it.
mkdir -p "$modules/tslab/node_modules"
ln -s ../../@types "$modules/tslab/node_modules/@types"
(cd $home && node -e 'require("zeromq"); console.log("zeromq loads")')
ln -s ../lib/code-interpreter/node_modules/.bin/tslab /usr/local/bin/tslab
place usr/local/share/jupyter/kernels/jslab usr/local/share/jupyter/kernels/tslab
