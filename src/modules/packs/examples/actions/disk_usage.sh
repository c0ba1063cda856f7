#!/bin/sh
# Called as: disk_usage.sh --unit=m /folder
set -eu
unit=m
for word in "$@"; do
  case "$word" in
    --unit=*) unit="${word#--unit=}" ;;
    *) folder="$word" ;;
  esac
done
du "-s$unit" "$folder"
