# Boots a systemd of its own, as root: in namespaces of its own, with a cgroup of its own, and with copies of the folders in which
# a service is installed. What is changed in there, nobody else sees. Only what units stand on is there: no unit of the machine.
#
#   sh systemd.sh FOLDER CGROUP    FOLDER is empty and thrown away later; CGROUP is a new folder in a hierarchy of version 2
set -e
echo $$ > "$2/cgroup.procs"
exec unshare --pid --fork --kill-child --mount --uts --ipc --cgroup --mount-proc sh -ec '
# Nothing of it reaches the machine. Within it mounts are shared, as systemd expects it: so a service gets the mount of its secrets.
mount --make-rprivate /
mount --make-rshared /
umount --recursive /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs "$0"
for folder in etc opt usr/local; do
  mkdir -p "$0/$folder" "$0/work/$folder"
  mount -t overlay -o "lowerdir=/$folder,upperdir=$0/$folder,workdir=$0/work/$folder" overlay "/$folder"
done
units=/usr/lib/systemd/system
mkdir "$0/journald"
cp $units/systemd-journald.service $units/systemd-journald.socket $units/systemd-journald-dev-log.socket "$0/journald"
for folder in $units /usr/lib/systemd/system-generators /etc/systemd/system /run; do mount -t tmpfs -o mode=755 tmpfs $folder; done
cp "$0"/journald/* $units
for target in sysinit basic multi-user network-online shutdown; do
  printf "[Unit]\nDefaultDependencies=no\n" > $units/$target.target
done
printf "[Journal]\nStorage=volatile\nReadKMsg=no\n" > /etc/systemd/journald.conf
printf "Wants=systemd-journald.socket\n" >> $units/multi-user.target
exec env -i container=test PATH="$PATH" /lib/systemd/systemd --system --unit=multi-user.target --log-target=journal --show-status=no
' "$1"
