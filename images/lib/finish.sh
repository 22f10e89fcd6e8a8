# The last step in the image: what only building needed goes away. Arguments: the parts that were built.
source /recipe/lib/steps.sh

apt-get -q clean
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/debconf/*-old /var/lib/dpkg/*-old /var/log/* /var/cache/ldconfig/* /root/.[!.]* /tmp/* /tmp/.[!.]*
find / -xdev \( -path /proc -o -path /recipe \) -prune -o -name '*.dpkg-*' -type f -print0 | xargs -0r rm -f
# An image has no identity of its own.
: >/etc/machine-id
rm -f /etc/hostname /etc/resolv.conf.* /var/lib/dbus/machine-id

# What is in it: the parts, and every package with its version.
printf '%s\n' "$@" >/etc/opensandbox-parts
dpkg-query -W -f='${Package} ${Version}\n' >/etc/opensandbox-packages
