#!/bin/sh
for word in "$1" "$2"; do
  case $word in
    '' | -*)
      echo "act and service must be given, and must not begin with -" >&2
      exit 2
      ;;
  esac
done
if [ -d /run/systemd/system ]; then
  exec systemctl "$1" -- "$2"
fi
exec service "$2" "$1"
