#!/usr/bin/env bash
# Makes a release in dist/: binaries for every system, archives, packages for Debian and Red Hat, container images, each with its bill of materials (CycloneDX), and
# checksums of all. The same commit gives the same bytes. Arguments select targets: scripts/dist.sh linux/amd64
# BINARY=FILE uses that binary, for this machine's system, instead of building one.
set -euo pipefail
cd "$(dirname "$0")/.."

export GOWORK=off
version=$(git describe --tags --match 'v[0-9]*' --always --dirty) # not the tags of gameclient and gameserver
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
targets=("$@")
((${#targets[@]})) || targets=(linux/amd64 linux/arm64 windows/amd64 windows/arm64 darwin/amd64 darwin/arm64)
to=${DIST:-dist}
rm -rf "$to"
mkdir -p "$to"
to=$(cd "$to" && pwd)

shared=$(mktemp -d)
trap 'rm -rf "$shared"' EXIT
own=${BINARY:-}
binaries=()
for target in "${targets[@]}"; do
	os=${target%/*} arch=${target#*/}
	name=muster-$version-$os-$arch
	if [[ $os == windows ]]; then name+=.exe; fi
	echo "$name"
	if [[ -n $own && $target == $(go env GOHOSTOS)/$(go env GOHOSTARCH) ]]; then
		cp "$own" "$to/$name"
	else
		GOOS=$os GOARCH=$arch scripts/release-build.sh "$to/$name" "$version"
	fi
	binaries+=("$to/$name")
	if [[ $target == $(go env GOHOSTOS)/$(go env GOHOSTARCH) ]]; then own=$to/$name; fi
done

# Manual pages and completions come from the command line, which is the same on all systems.
if [[ -z $own ]]; then
	own=$shared/muster
	CGO_ENABLED=0 go build -trimpath -ldflags "-X main.version=$version" -o "$own" ./cmd/muster
fi
mkdir "$shared/completions"
"$own" man "$shared/man1" >/dev/null
"$own" completion bash >"$shared/completions/muster.bash"
"$own" completion zsh >"$shared/completions/_muster"
"$own" completion fish >"$shared/completions/muster.fish"

cp LICENSE "$to/"
(cd scripts/release && go run . -source ../.. -version "$version" -revision "$(git rev-parse HEAD)" -time "$SOURCE_DATE_EPOCH" -shared "$shared" -to "$to" "${binaries[@]}")
