#!/usr/bin/env bash
# Everything that must hold, from the quickest to the slowest. `make test` and CI run this.
set -euo pipefail
cd "$(dirname "$0")/.."

# One set of flags, that of the binary: otherwise each package is compiled once for the build and once for the tests.
export GOFLAGS="${GOFLAGS:-} -trimpath"

step() { printf '\n== %s (%ds)\n' "$1" $SECONDS; }

# A package that takes longer hangs; a busy machine takes several times what an idle one does. lint.sh has vetted all of them.
tests="-timeout=30m -vet=off"

# Where several goroutines meet; the race detector needs cgo and makes tests five to ten times slower.
concurrent=(domain/wire cluster identity keyring localdoor signin fair connlimit listen frames panics engine journal archive serverlink gamelift playerapi playerhooks playerwatch matchmaker notify)

step "what the tests need"
scripts/test-needs.sh

step "format, vet, staticcheck"
scripts/lint.sh

step "known vulnerabilities"
scripts/vulnerabilities.sh

step "build"
make --no-print-directory build

step "tests"
# Tests of e2e mostly wait, hence -parallel.
go test $tests -parallel 4 ./...

step "tests with the race detector"
# A process with the race detector waits for a second before it ends, hence -p. pebblegozstd is the compression of the binary, which has no cgo.
CGO_ENABLED=1 go test $tests -p 4 -tags pebblegozstd -race -short ./gameserver/... ./gameclient/... ./e2e/libraries ./examples/... $(printf './internal/%s/... ' "${concurrent[@]}")

step "tests of the other modules"
for module in $(git ls-files '*/go.mod'); do
	(cd "$(dirname "$module")" && GOWORK=off go test $tests ./...)
done

step "done"
