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

# What other systems and compilers of that part would need.
abi=$(node -p process.versions.modules)
find $home/node_modules/zeromq/build -name addon.node ! -path "*/linux/$(node -p process.arch)/node/*$abi*" -delete
find $home/node_modules/zeromq/build -name addon.node -path '*musl*' -delete
find $home/node_modules/zeromq/build -type d -empty -delete
rm -rf $home/node_modules/{cmake-ts,node-addon-api} $home/node_modules/zeromq/{src,script,CMakeLists.txt,vcpkg.json}
find $home/node_modules \( -name '*.map' -o -name '*.md' -o -name '*.markdown' \) -type f -delete
(cd $home && node -e 'require("zeromq"); console.log("zeromq loads")')
ln -s ../lib/code-interpreter/node_modules/.bin/tslab /usr/local/bin/tslab
place usr/local/share/jupyter/kernels/jslab usr/local/share/jupyter/kernels/tslab
