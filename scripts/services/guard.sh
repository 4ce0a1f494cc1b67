# Reads orders from standard input until that closes, which it also does when the process that writes them is killed. Then
# ends what is still running, the newest first, and deletes the throw-away folders.
#   watch <pid> <signal> <tenths>   end the process group <pid> with <signal>, after so many tenths with KILL
#   forget <pid>                    it has ended
#   remove <folder>                 delete the folder at the end
# POSIX sh, which is there on Linux and macOS when everything else is gone.

trap '' HUP INT QUIT TERM PIPE

running=''
set --

# A zombie counts as ended: nobody may be left to reap it.
is_running() {
  kill -0 "-$1" 2>/dev/null || return 1
  case $(ps -o stat= -p "$1" 2>/dev/null) in
    Z*) return 1 ;;
  esac
}

while IFS= read -r line; do
  rest=${line#* }
  case $line in
    'watch '*)
      IFS=' ' read -r pid signal tenths <<END
$rest
END
      running="$pid:$signal:$tenths $running"
      ;;
    'forget '*)
      kept=''
      for entry in $running; do
        case $entry in
          "$rest":*) ;;
          *) kept="$kept$entry " ;;
        esac
      done
      running=$kept
      ;;
    'remove '*) set -- "$@" "$rest" ;;
  esac
done

for entry in $running; do
  pid=${entry%%:*}
  tenths=${entry##*:}
  signal=${entry#*:}
  kill "-${signal%:*}" "-$pid" 2>/dev/null || continue
  # A stopped process handles no signal but this one and KILL.
  kill -CONT "-$pid" 2>/dev/null
  while is_running "$pid" && [ "$tenths" -gt 0 ]; do
    sleep 0.1
    tenths=$((tenths - 1))
  done
  kill -KILL "-$pid" 2>/dev/null
done

for folder in "$@"; do
  # A killed Postgres leaves a small System V shared memory segment, and macOS allows 32 of them.
  for lock in "$folder"/data/postmaster.pid "$folder"/*/data/postmaster.pid; do
    [ -f "$lock" ] || continue
    segment=$(sed -n '7s/.* //p' "$lock")
    [ -n "$segment" ] && ipcrm -m "$segment" 2>/dev/null
  done
  # A process may write one more file while it ends.
  for attempt in 1 2 3 4 5; do
    rm -rf "$folder" 2>/dev/null && break
    # A control group: its files cannot be deleted, and need not be.
    rmdir "$folder" 2>/dev/null && break
    sleep 0.2
  done
done
