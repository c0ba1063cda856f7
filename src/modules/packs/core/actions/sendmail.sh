#!/bin/sh
# The server says where its Node and its mail program are; the arguments are in the order of the action's positions.
if [ -z "$SVC_ACTION_NODE" ] || [ -z "$SVC_ACTION_SEND_MAIL" ]; then
  echo 'This script only works as an action of the pack core.' >&2
  exit 2
fi
# On standard input, because other accounts can see the arguments of a program; printf is a part of the shell.
printf '%s\0' "$@" | "$SVC_ACTION_NODE" ${SVC_ACTION_NODE_FLAG:+"$SVC_ACTION_NODE_FLAG"} "$SVC_ACTION_SEND_MAIL"
