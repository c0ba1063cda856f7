#!/bin/sh
exec traceroute -m "$2" -q "$3" -- "$1"
