#!/usr/bin/env bash
# Static binaries for every system we ship to, each with its bill of materials (CycloneDX), and checksums of all.
set -euo pipefail
cd "$(dirname "$0")/.."

export GOWORK=off
version=$(git describe --tags --match 'v[0-9]*' --always --dirty) # not the tags of gameclient and gameserver
rm -rf dist
mkdir dist
for target in linux/amd64 linux/arm64 windows/amd64 darwin/amd64 darwin/arm64; do
	os=${target%/*} arch=${target#*/}
	name=muster-$version-$os-$arch
	if [[ $os == windows ]]; then name+=.exe; fi
	echo "$name"
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -trimpath -ldflags "-s -w -X main.version=$version" -o "dist/$name" ./cmd/muster
done
(cd scripts/sbom && go run . ../../dist/muster-*)
cp LICENSE dist/
(cd dist && sha256sum muster-* >SHA256SUMS)
