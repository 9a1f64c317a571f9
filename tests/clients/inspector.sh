#!/bin/sh
# Inspector 2 in its command-line mode against a node: list (with its schema lint), call, error text.
# It has no way to cancel; progress it does not print.
#
# inspector.sh URL                  over HTTP
# inspector.sh COMMAND ARGUMENT...  over standard input and output
set -eu
case $1 in
http*) set -- --transport http --server-url "$1" ;;
*) set -- -- "$@" ;;
esac
ask() {
  method=$1
  shift
  mcp-inspector --cli --method "$method" "$@"
}
ask tools/list --strict "$@" | grep -q '"stroke"'
ask tools/call --tool-name sense "$@" | grep -q '"success": true'
# An error that a tool reports ends Inspector with 5, and its text is shown. It knows the list and refuses unknown names itself.
status=0
wrong=$(ask tools/call --tool-name stroke --tool-arg scene=nowhere "$@" 2>&1) || status=$?
[ "$status" = 5 ]
echo "$wrong" | grep -q default
echo "inspector: list, call, error text"
