#!/usr/bin/env bash
# Runs each fuzz test for a while: scripts/fuzz.sh 30s
set -euo pipefail
cd "$(dirname "$0")/.."

for package in $(go list work); do
	for name in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "== $package $name"
		# By default, minimizing each new input takes a minute, which is nearly all of the time for a test over the network.
		go test "$package" -run '^$' -fuzz "^$name\$" -fuzztime "${1:-10s}" -fuzzminimizetime 1s
	done
done
