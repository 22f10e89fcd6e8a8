# What every sandbox of this image has: a shell, the usual tools, python3 with pip, and the entry point that holds it.
source /recipe/lib/steps.sh

# A Dockerfile begins from an image of Debian that was not made by images/build: the same rules for dpkg here.
grep -v '^#' /recipe/lib/dpkg-options >/etc/dpkg/dpkg.cfg.d/opensandbox
apt-get -q update
install_packages ca-certificates curl procps less file unzip xz-utils zip jq iproute2 python3 python3-pip

# uid 1000 is who a sandbox runs its payload as; nobody and nogroup come with Debian.
groupadd --gid 1000 user
useradd --uid 1000 --gid 1000 --home-dir /home/user --create-home --skel /dev/null --shell /bin/bash user
mkdir -p /workspace
chown 1000:1000 /workspace
place opt/code-interpreter
