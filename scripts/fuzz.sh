#!/usr/bin/env bash
# Runs each fuzz test for a while: scripts/fuzz.sh 30s
set -euo pipefail
cd "$(dirname "$0")/.."

for package in $(go list ./...); do
	for name in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "== $package $name"
		go test "$package" -run '^$' -fuzz "^$name\$" -fuzztime "${1:-10s}"
	done
done
