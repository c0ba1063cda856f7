#!/bin/sh
processors=$(getconf _NPROCESSORS_ONLN) || exit
read -r one five fifteen rest < /proc/loadavg || exit
export processors one five fifteen
exec awk -v period="$1" '
  BEGIN {
    processors = ENVIRON["processors"]
    load["1"] = ENVIRON["one"] / processors
    load["5"] = ENVIRON["five"] / processors
    load["15"] = ENVIRON["fifteen"] / processors
    if (period in load) print load[period]
    else printf "{\"1\": \"%s\", \"5\": \"%s\", \"15\": \"%s\"}\n", load["1"], load["5"], load["15"]
  }
'
