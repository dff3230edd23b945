#!/usr/bin/env bash
# Runs the tests of the modules other than the main one, each as its users build it: without the workspace.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOWORK=off

# test.sh ends this script after a failure; the process that it waits for ends with it.
trap 'kill $! 2>/dev/null || true; exit 1' TERM

# inside MODULE COMMAND...
inside() {
	(cd "$1" && exec "${@:2}") &
	wait $!
}

tests="-timeout=30m -vet=off"
for module in $(git ls-files '*/go.mod' ':!scripts/charts/go.mod'); do # make packages tests this one
	inside "$(dirname "$module")" go test $tests ./...
done
for library in gameclient gameserver; do
	inside $library env CGO_ENABLED=1 go test $tests -race -short ./...
done
