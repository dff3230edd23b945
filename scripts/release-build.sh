#!/usr/bin/env bash
# Builds muster as releases have it, for GOOS and GOARCH: static, stripped, and without the methods that nothing calls (scripts/prune). Tests of e2e run this build.
#
#   scripts/release-build.sh FILE [VERSION]
set -euo pipefail
version=${2:-}
case $1 in /*) out=$1 ;; *) out=$PWD/$1 ;; esac
cd "$(dirname "$0")/.."
export GOWORK=off CGO_ENABLED=0

env -u GOOS -u GOARCH go run ./scripts/prune bin/prune
# grpcnotrace: else gRPC links pages with templates of its own, which nothing serves.
GOGC=off GOMEMLIMIT=1GiB go build -trimpath -tags grpcnotrace -overlay bin/prune/overlay.json -modfile bin/prune/go.mod \
	-ldflags "-s -w${version:+ -X main.version=$version}" -o "$out" ./cmd/muster
