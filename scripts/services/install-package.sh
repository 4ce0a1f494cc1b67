# Installs the Debian package $1 for its programs alone: run as root, it starts no service and enables none.
# Ours alone is the policy file if there was none before; it goes on every way out.

set -e
package=$1
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
policy=/usr/sbin/policy-rc.d
apt='apt-get -q -y -o DPkg::Lock::Timeout=120'

# One at a time: whoever ends first would take the policy file away from the other. Locked is the folder it is in.
exec 9</usr/sbin
flock -w 600 9

if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi

install() {
  $apt install --no-install-recommends "$package"
}

# Package lists may be missing, as in most containers, or too old to be of use.
install || {
  $apt update
  install
}

# Debian enables what it installs: without this the next boot would start a broker that nobody asked for.
if [ -d /run/systemd/system ]; then
  systemctl disable "$package.service" || true
fi
