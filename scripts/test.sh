#!/usr/bin/env bash
# Runs all checks, from the quickest to the slowest. `make test` and CI run this.
set -euo pipefail
cd "$(dirname "$0")/.."

# The same flags as for the binary: otherwise each package would be compiled once for the build and once for the tests.
export GOFLAGS="${GOFLAGS:-} -trimpath"

step() { printf '\n== %s (%ds)\n' "$1" $SECONDS; }

# A package that exceeds the timeout hangs; a busy machine takes several times as long as an idle one. lint.sh has vetted all packages. Many tests mostly wait, hence -p.
tests="-timeout=30m -vet=off -p 4"

# The packages with concurrency; the race detector needs cgo and makes tests five to ten times slower.
concurrent=(domain/wire cluster identity secretrotation quotas live logsink keyring audit people sso localdoor signin fair connlimit listen frames panics warm insist engine embeddb journal archive series objects builddoor buildfetch sessionlogs backup/repository serverlink agentlink agent linkclient gamelift sessionapi playerapi playerhooks playerwatch sessionwatch matchmaker scaler office notify gamemetrics tokenkeys tracing operator console service)

step "what the tests need"
scripts/test-needs.sh
# This waits for the network while the processor is busy with the next steps.
newest=$(mktemp)
scripts/newest-clients.sh >"$newest" 2>&1 &
fetching=$!
trap 'kill $fetching 2>/dev/null || true; rm -f "$newest"' EXIT

step "format, vet"
scripts/lint.sh

step "known vulnerabilities"
scripts/vulnerabilities.sh

step "build"
export GOWORK=off # as in lint.sh: in the workspace, the libraries and packages that import them would be compiled again
make --no-print-directory build

# Many tests mostly wait. Meanwhile two quiet steps use the processor; they end with this script.
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
# The tests in e2e mostly wait, hence -parallel.
go test $tests -parallel 4 ./...

step "tests with the race detector"
# pebblegozstd selects the compression of the binary, which has no cgo.
race="$tests -tags pebblegozstd -race -short"
CGO_ENABLED=1 go test $race ./mustertest ./e2e/libraries ./examples/... $(printf './internal/%s/... ' "${concurrent[@]}")

step "tests of the other modules"
wait $modules || { cat "$others"; exit 1; }
cat "$others"

step "staticcheck"
wait $staticcheck || { cat "$report"; exit 1; }

step "done"
