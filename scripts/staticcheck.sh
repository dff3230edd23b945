#!/usr/bin/env bash
# Runs staticcheck for every module of the repository, each without the workspace. Without its cache it takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOWORK=off
root=$PWD

# test.sh ends this script after a failure; the process that it waits for ends with it.
trap 'kill $! 2>/dev/null || true; exit 1' TERM

GOBIN=$PWD/bin go install honnef.co/go/tools/cmd/staticcheck@v0.8.2
for module in $(git ls-files --cached --others --exclude-standard go.mod '*/go.mod' ':!scripts/charts/go.mod'); do # as in lint.sh
	cd "$(dirname "$module")"
	"$root/bin/staticcheck" ./... &
	wait $!
	cd "$root"
done
