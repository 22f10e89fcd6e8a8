# What the parts of every recipe share. Sourced inside the image being built, by images/build and by a Dockerfile alike.
set -euo pipefail
# shellcheck source=/dev/null
[[ ! -f /recipe/pins ]] || source /recipe/pins

install_packages() {
  apt-get -q -o APT::Install-Recommends=false -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 install -y "$@"
}

# fetch URL SHA256 FILE: the file with that content, or the end of the build.
fetch() {
  curl --fail --silent --show-error --location --retry 4 --retry-connrefused --connect-timeout 20 --max-time 600 --proto '=https' -o "$3" "$1"
  printf '%s  %s\n' "$2" "$3" | sha256sum --check --quiet - || { printf 'wrong content: %s\n' "$1" >&2; exit 1; }
}

# Wheels only, each with its checksum, nothing beside what the file names: no package's own code runs here.
install_wheels() {
  pip install --quiet --no-cache-dir --no-compile --break-system-packages --root-user-action=ignore --disable-pip-version-check \
    --only-binary :all: --no-deps --require-hashes ${CURL_CA_BUNDLE:+--cert "$CURL_CA_BUNDLE"} -r "$1"
}

# fetch_module PATH VERSION SHA256 FOLDER: a Go module as the proxy serves it. Its own go.sum pins what it needs in turn.
fetch_module() {
  fetch "https://proxy.golang.org/$1/@v/$2.zip" "$3" /tmp/module.zip
  python3 -m zipfile -e /tmp/module.zip /tmp/module
  mv "/tmp/module/$1@$2" "$4"
  rm -rf /tmp/module /tmp/module.zip
}

# place PATH...: files of the recipe's rootfs/ folder, with the modes they have there.
place() {
  local path
  for path in "$@"; do
    mkdir -p "/${path%/*}"
    cp -R "/recipe/rootfs/$path" "/${path%/*}/"
  done
}
