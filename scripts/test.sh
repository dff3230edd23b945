#!/usr/bin/env bash
# Everything that must hold, from the quickest to the slowest. `make test` and CI run this.
set -euo pipefail
cd "$(dirname "$0")/.."

# One set of flags, that of the binary: otherwise each package is compiled once for the build and once for the tests.
export GOFLAGS="${GOFLAGS:-} -trimpath"

step() { printf '\n== %s (%ds)\n' "$1" $SECONDS; }

# A package that takes longer hangs; a busy machine takes several times what an idle one does. lint.sh has vetted all of them. Many wait, hence -p.
tests="-timeout=30m -vet=off -p 4"

# Where several goroutines meet; the race detector needs cgo and makes tests five to ten times slower.
concurrent=(domain/wire cluster identity secretrotation quotas live logsink keyring audit people sso localdoor signin fair connlimit listen frames panics engine journal archive serverlink gamelift playerapi playerhooks playerwatch matchmaker notify console)

step "what the tests need"
scripts/test-needs.sh
# Waits for the network, while the processor is busy with the next steps.
newest=$(mktemp)
scripts/newest-clients.sh >"$newest" 2>&1 &
fetching=$!
trap 'kill $fetching 2>/dev/null || true; rm -f "$newest"' EXIT

step "format, vet"
scripts/lint.sh

step "known vulnerabilities"
scripts/vulnerabilities.sh

step "build"
export GOWORK=off # as lint.sh has compiled it: in the workspace the libraries and what imports them would be compiled once more
make --no-print-directory build

# Many tests wait. Two quiet steps have the processor meanwhile, and end with this script.
report=$(mktemp) others=$(mktemp)
nice -n 19 scripts/staticcheck.sh >"$report" 2>&1 &
staticcheck=$!
nice -n 19 scripts/test-modules.sh >"$others" 2>&1 &
modules=$!
trap 'kill $staticcheck $modules $fetching 2>/dev/null || true; rm -f "$report" "$others" "$newest"' EXIT

step "the newest AWS clients"
wait $fetching || { cat "$newest"; exit 1; }
cat "$newest"

step "tests"
# Tests of e2e mostly wait, hence -parallel.
go test $tests -parallel 4 ./...

step "tests with the race detector"
# pebblegozstd is the compression of the binary, which has no cgo.
race="$tests -tags pebblegozstd -race -short"
CGO_ENABLED=1 go test $race ./e2e/libraries ./examples/... $(printf './internal/%s/... ' "${concurrent[@]}")

step "tests of the other modules"
wait $modules || { cat "$others"; exit 1; }
cat "$others"

step "staticcheck"
wait $staticcheck || { cat "$report"; exit 1; }

step "done"
