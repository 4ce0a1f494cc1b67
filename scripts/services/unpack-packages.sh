# Unpacks Debian packages for their programs, into a folder of ours: needs no rights, and starts no service. The folder is the first
# argument, and is whole if it is there.

set -e
export LC_ALL=C
folder=$1
shift

# One at a time: two programs may come from one package.
mkdir -p "${folder%/*}"
exec 9>"$folder.lock"
flock -w 600 9
[ ! -e "$folder" ] || exit 0

half="$folder.half"
rm -rf "$half"
mkdir "$half"
cd "$half"

# Package lists may be missing, as in most containers, or too old to be of use. Only root can get them.
apt-get -q download "$@" || {
  apt-get -q update
  apt-get -q download "$@"
}
for package in ./*.deb; do
  dpkg -x "$package" .
  rm "$package"
done
mv "$half" "$folder"
