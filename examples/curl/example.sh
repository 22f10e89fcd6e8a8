#!/bin/sh
# A sandbox with nothing but curl: make a session, run a command in it, read its output as it comes, end it.
set -eu
api=${OPENSANDBOX_URL:-http://127.0.0.1:9111}
api=${api%/api/v1}/api/v1

ask() { curl --silent --show-error --fail-with-body --header 'Content-Type: application/json' "$@"; }

echo '== one command, one request'
ask "$api/run" --data '{"command": "echo hello from $(uname -s)", "timeout_seconds": 10}'
echo

echo '== a session with limits'
session=$(ask "$api/sessions" --data '{
  "resources": {"memory_mb": 128, "pids": 32, "timeout_seconds": 120},
  "security": {"network_policy": "deny_all", "command_policy": {"rules": [{"name": "no-curl", "program": "curl", "action": "deny"}]}}
}' | sed 's/.*"session_id": *"\([^"]*\)".*/\1/')
trap 'ask --request DELETE "$api/sessions/$session"' EXIT

echo '== a file in, a command, a file out'
printf '3\n1\n2\n' | ask --request PUT "$api/sessions/$session/files?path=numbers.txt" --header 'Content-Type: application/octet-stream' --data-binary @- >/dev/null
ask "$api/sessions/$session/exec" --data '{"command": "sort numbers.txt > sorted.txt; wc -l sorted.txt"}'
echo
ask "$api/sessions/$session/files?path=sorted.txt"

echo '== output as it comes'
ask --no-buffer "$api/sessions/$session/exec" --data '{"command": "for i in 1 2 3; do echo tick $i; done", "stream": true}'

echo '== a refused command names its rule'
ask "$api/sessions/$session/exec" --data '{"command": "curl https://example.com/"}' || true
echo
