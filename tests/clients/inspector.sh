#!/bin/sh
# Inspector 2 in its command-line mode against a node: list (with its schema lint), call, progress, cancel, error text.
# It prints no progress and asks for it only when told to, so what the node tells it is read from the wire.
#
# inspector.sh URL                  over HTTP
# inspector.sh COMMAND ARGUMENT...  over standard input and output
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
relay=
end() {
  [ -z "$relay" ] || kill "$relay" 2>/dev/null || true
  rm -rf "$work"
}
trap end EXIT
case $1 in
http*)
  url=$1
  rest=${url#http://}
  mkfifo "$work/hold"
  python3 "$here/relay.py" "${rest%%/*}" "$work/wire" <"$work/hold" >"$work/port" &
  relay=$!
  exec 9>"$work/hold"
  while [ ! -s "$work/port" ]; do sleep 0.1; done
  set -- --transport http --server-url "http://127.0.0.1:$(cat "$work/port")/${rest#*/}"
  ;;
*)
  url=
  # What the node says is written down on its way, and how it ends: with 0 where its arm was read back to stand.
  set -- -- sh -c 'wire=$1; shift; { "$@"; echo $? >"$wire.end"; } | tee -a "$wire"' sh "$work/wire" "$@"
  ;;
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
# Progress: a client before us may have stopped the arm.
ask tools/call --tool-name reset "$@" >/dev/null 2>&1 || true
# Each run of Inspector is a client of its own: the arm has to be free again.
sleep 1.5
: >"$work/wire"
rm -f "$work/wire.end"
mcp-inspector --cli --method tools/call --tool-name stroke --tool-metadata progressToken=p "$@" >"$work/out" 2>&1 &
drawing=$!
tries=0
while [ "$(grep -c notifications/progress "$work/wire")" -lt 3 ]; do
  tries=$((tries + 1))
  [ "$tries" -lt 300 ] || { cat "$work/out" >&2; exit 1; }
  sleep 0.1
done
# Cancel: an Inspector that is ended hangs up, and the arm stops.
kill "$drawing"
wait "$drawing" || true
if [ -n "$url" ]; then
  tries=0
  until ask tools/call --tool-name sense "$@" | grep -q '"state": "stopped"'; do
    tries=$((tries + 1))
    [ "$tries" -lt 10 ] || exit 1
  done
else
  tries=0
  until [ -s "$work/wire.end" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || exit 1
    sleep 0.1
  done
  [ "$(cat "$work/wire.end")" = 0 ]
fi
echo "inspector: list, call, progress, cancel, error text"
