#!/usr/bin/env bash
# Builds muster as for a release, for GOOS and GOARCH: static, stripped, and without unused methods (scripts/prune). The tests in e2e run this build.
#
#   scripts/release-build.sh FILE [VERSION]
set -euo pipefail
version=${2:-}
case $1 in /*) out=$1 ;; *) out=$PWD/$1 ;; esac
cd "$(dirname "$0")/.."
export GOWORK=off CGO_ENABLED=0

env -u GOOS -u GOARCH go run ./scripts/prune bin/prune
# Without grpcnotrace, gRPC would link pages with its own templates, which nothing serves.
GOGC=off GOMEMLIMIT=1GiB go build -trimpath -tags grpcnotrace -overlay bin/prune/overlay.json -modfile bin/prune/go.mod \
	-ldflags "-s -w${version:+ -X main.version=$version}" -o "$out" ./cmd/muster
