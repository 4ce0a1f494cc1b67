# Installs Debian packages for their programs alone. Runs as root; starts and enables no service. If there was no policy file
# before, ours is deleted however the script ends.

set -e
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
policy=/usr/sbin/policy-rc.d
apt='apt-get -q -y -o DPkg::Lock::Timeout=120'

# One at a time: the first to end would delete the other's policy file. The lock is on the file's folder.
exec 9</usr/sbin
flock -w 600 9

if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi

enabled_services() {
  systemctl list-unit-files --type=service --state=enabled --no-legend | cut -d ' ' -f 1
}
[ ! -d /run/systemd/system ] || enabled=" $(enabled_services | tr '\n' ' ') "

install() {
  $apt install --no-install-recommends "$@"
}

# Package lists may be missing, as in most containers, or too old to be of use.
install "$@" || {
  $apt update
  install "$@"
}

# Debian enables the services that it installs, under names of theirs or of packages that they depend on: without this, the next boot
# would start them.
if [ -d /run/systemd/system ]; then
  for unit in $(enabled_services); do
    case $enabled in
      *" $unit "*) ;;
      *) systemctl disable "$unit" || true ;;
    esac
  done
fi
