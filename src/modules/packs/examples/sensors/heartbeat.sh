#!/bin/sh
# Each line on stdout is a dispatch, in JSON. What goes to stderr is the log: svc sensor tail examples.HeartbeatSensor
read -r load _ </proc/loadavg
echo "The load is $load." >&2
echo "{\"trigger\": \"examples.heartbeat\", \"payload\": {\"load\": $load}}"
