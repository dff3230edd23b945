#!/usr/bin/env bash
# Runs the tests of packages that make test omits, because they need more programs and more compiling: completions in all shells, manual pages, lintian and rpm, the Helm chart and the Compose file.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
for program in lintian rpm zsh fish mandoc man systemd-analyze setpriv ip; do
	[[ -x $(command -v "$program") ]] || missing+=("$program")
done
if ((${#missing[@]})); then
	packages=("${missing[@]/%man/man-db}")
	packages=("${packages[@]/systemd-analyze/systemd}")
	packages=("${packages[@]/setpriv/util-linux}")
	packages=("${packages[@]/#ip/iproute2}")
	scripts/install.sh "${packages[@]}" || { echo "make packages requires all of its tools; make test skips tests whose tools are missing"; exit 1; }
fi

export GOWORK=off PACKAGE_TOOLS=required
make --no-print-directory build
go test -count=1 -timeout=30m ./cmd/muster -run '^(TestCompletions|TestManualPages)$'
(cd scripts/release && go test -count=1 -timeout=30m ./...)
(cd scripts/charts && go mod tidy -diff && go vet ./... && go test -count=1 -timeout=30m ./...)
