#!/usr/bin/env bash
# Runs gosec with the rules that have found something useful. docs/security/static-analysis.md explains why the others are
# excluded. It takes minutes, so it is not part of `make test`.
set -euo pipefail
cd "$(dirname "$0")/.."

GOBIN=$PWD/bin go install github.com/securego/gosec/v2/cmd/gosec@v2.22.11
bin/gosec -quiet -exclude-generated -exclude=G103,G104,G115,G204,G301,G304,G306,G404,G602 \
	-exclude-dir=e2e -exclude-dir=examples -exclude-dir=internal/bench -exclude-dir=internal/linkclient -exclude-dir=internal/sim ./...
