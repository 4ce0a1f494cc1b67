# Ends all that runs in a folder once it is asked to end itself. Patroni starts Postgres in a session of its own, so that neither a signal
# to its group nor its own end reaches it: it is found by the folder in its arguments. FOLDER is in the environment, so that this
# process is not found itself.

# A postmaster's children have no folder in their arguments, and end with it.
running() {
  ps -A -o pid= -o args= | while read -r pid args; do
    case $args in *"$FOLDER"/*) echo "$pid" ;; esac
  done
}

end_with() {
  for pid in $(running); do kill "-$1" "$pid" 2>/dev/null; done
}

# A stopped process handles no signal but this one and KILL.
continue_all() {
  parents=" $(running | tr '\n' ' ') "
  ps -A -o pid= -o ppid= | while read -r pid parent; do
    case $parents in *" $pid "* | *" $parent "*) kill -CONT "$pid" 2>/dev/null ;; esac
  done
}

finish() {
  # Twice: what was just being started may not have been seen. QUIT ends Postgres at once, and its children, too.
  for attempt in 1 2; do
    end_with QUIT
    continue_all
    sleep 0.1
  done
  tenths=30
  while [ -n "$(running)" ] && [ "$tenths" -gt 0 ]; do
    sleep 0.1
    tenths=$((tenths - 1))
  done
  end_with KILL
  exit 0
}

trap finish TERM
while :; do
  sleep 3600 &
  wait
done
