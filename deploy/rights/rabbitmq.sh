#!/bin/sh
# Makes accounts at RabbitMQ that can do what they must and nothing more. Run again, it changes the password.
# To be run where rabbitmqctl finds the node, with the password in PASSWORD:
#
#   rabbitmq.sh publish                          the service, which publishes, and replays to one queue; and the virtual host
#   rabbitmq.sh subscribe billing                a subscriber: its queue, which has the account's name, and its dead letters
#   rabbitmq.sh subscribe billing 'completed'    the same for some kinds of events, separated by |: completed|failed|progress
#   rabbitmq.sh monitor                          watches the broker by the management API
#   rabbitmq.sh look                             the service's look at its destinations (BROKER_MANAGEMENT_URL)
#
# VHOST, PUBLISHER, MONITOR, LOOK, AMQP_EXCHANGE and AMQP_ROUTING_PREFIX change the names. The virtual host is Tallyhook's own, since a
# replay to one queue needs the right to write to all queues of its virtual host.
set -eu
usage() {
  echo 'usage: PASSWORD=… rabbitmq.sh publish | subscribe QUEUE [KINDS] | monitor | look' >&2
  exit 2
}
: "${PASSWORD:?has to be set}" # without one the account would be anybody's
vhost=${VHOST:-tallyhook} exchange=${AMQP_EXCHANGE:-conversion.events} prefix=${AMQP_ROUTING_PREFIX:-job}

password() { printf '%s\n' "$PASSWORD" | rabbitmqctl -q "$1" "$2"; } # by standard input: no list of processes shows it
account() { password add_user "$1" > /dev/null 2>&1 || password change_password "$1" > /dev/null; }
pattern() { printf %s "$1" | sed 's/[].[*^$+?(){}|\\]/\\&/g'; }
allow() { rabbitmqctl -q set_permissions -p "$vhost" "$@"; }
allow_keys() { rabbitmqctl -q set_topic_permissions -p "$vhost" "$1" "$exchange" "$2" "$3"; }

exchanges=$(pattern "$exchange") keys="^$(pattern "$prefix")\\."

case "${1:-}" in
  publish) # configures and writes its exchange, writes to queues, reads nothing
    name=${PUBLISHER:-tallyhook_run}
    rabbitmqctl -q add_vhost "$vhost" # changes nothing, if there is one
    account "$name"
    allow "$name" "^$exchanges\$" "^($exchanges|amq\\.default)\$" '^$'
    allow_keys "$name" "$keys" '^$'
    ;;
  subscribe) # owns its queue and the one for its dead letters, reads the exchange
    [ -n "${2:-}" ] || usage
    own="$(pattern "$2")(\\.dead)?"
    account "$2"
    allow "$2" "^$own\$" "^$own\$" "^($own|$exchanges)\$"
    allow_keys "$2" '^$' "$keys${3:+($3)\\.}"
    ;;
  monitor) # sees nodes and connections, and the queues of this virtual host; it can do nothing with them
    name=${MONITOR:-tallyhook_monitor}
    account "$name"
    rabbitmqctl -q set_user_tags "$name" monitoring
    allow "$name" '^$' '^$' '^$'
    ;;
  look) # sees the queues and bindings of this virtual host; it can do nothing with them
    name=${LOOK:-tallyhook_look}
    account "$name"
    rabbitmqctl -q set_user_tags "$name" management
    allow "$name" '^$' '^$' '^$'
    ;;
  *) usage ;;
esac
