#!/bin/sh
# The server says where its Node and its mail program are; the arguments are in the order of the action's positions.
if [ -z "$SVC_ACTION_NODE" ] || [ -z "$SVC_ACTION_SEND_MAIL" ]; then
  echo 'This script only works as an action of the pack core.' >&2
  exit 2
fi
exec "$SVC_ACTION_NODE" "$SVC_ACTION_SEND_MAIL" "$@"
