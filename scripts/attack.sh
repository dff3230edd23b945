#!/usr/bin/env bash
# Runs the attacks: the tests named TestAttack… in all packages. Those in e2e attack the running binary; the others use the race detector, because revocations race with what they end.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t packages < <(git grep -l '^func TestAttack' -- '*_test.go' ':!e2e' | xargs -n1 dirname | sort -u | sed 's|^|./|')
echo "attacks of e2e ${packages[*]}"
CGO_ENABLED=1 go test -race -tags pebblegozstd -run '^TestAttack' -count=1 -timeout=30m "${packages[@]}"
go test ./e2e -run '^TestAttack' -count=1 -timeout=30m
