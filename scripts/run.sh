#!/usr/bin/env bash
# Plays the demo and keeps it running. `make run` calls this script. It uses a release's binary if one is available, and otherwise compiles what the demo needs:
#
#   MUSTER_RELEASE=FILE   a binary, or an archive with one, whose checksum is in FILE.sha256 or in SHA256SUMS in the same directory. Nothing is compiled, and Go is not needed.
#   dist/                 a binary that `make dist` made from exactly this commit is used, too.
#   DEMO_FLAGS=…          flags of `muster demo`, such as --exit
#   --compile             only compiles
#
# It never fetches a release.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 GOWORK=off # as make build, which would otherwise compile some packages again

say() { printf 'make run: %s\n' "$*"; }
fail() {
	printf 'make run: %s\n' "$*" >&2
	exit 1
}

sum() {
	if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1
}

# checked FILE succeeds if the file has its published checksum.
checked() {
	local file=$1 name list want=
	name=$(basename "$file")
	for list in "$file.sha256" "$(dirname "$file")/SHA256SUMS"; do
		[[ -f $list ]] || continue
		want=$(awk -v name="$name" '{ sub(/^\*/, "", $2) } NF == 1 || $2 == name { print $1; exit }' "$list")
		[[ -z $want ]] || break
	done
	[[ -n $want ]] || { say "$file: no checksum in $name.sha256 or SHA256SUMS beside it" >&2 && return 1; }
	[[ $(sum "$file") == "$want" ]] || { say "$file: the checksum is not that of $list" >&2 && return 1; }
}

# unpacked FILE prints the path of the binary, which is FILE itself or in it.
unpacked() {
	local to=bin/release
	rm -rf "$to"
	mkdir -p "$to"
	case $1 in
	*.tar.gz | *.tgz) tar -xzf "$1" -C "$to" ;;
	*.zip) unzip -q "$1" -d "$to" ;;
	*) install -m 755 "$1" "$to/muster" ;; # a file that was downloaded is not executable
	esac
	find "$to" -type f \( -name muster -o -name muster.exe \) | head -n 1
}

# ofThisCommit prints the binary in dist/ that was made from this commit for this machine, if there is one.
ofThisCommit() {
	local os arch version
	version=$(git describe --tags --match 'v[0-9]*' --always --dirty 2>/dev/null) || return 0
	os=$(uname -s | tr '[:upper:]' '[:lower:]')
	arch=$(uname -m)
	case $arch in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; esac
	local file=dist/muster-$version-$os-$arch
	if [[ $version != *-dirty && -f $file ]]; then echo "$file"; fi
}

# tell reads the output of the go command. It counts packages and modules, reports the progress every 5 seconds, and forwards everything else.
tell() {
	local all=$1 begin=$SECONDS next=$((SECONDS + 5)) packages=0 modules=0 line
	while IFS= read -r line; do
		case $line in
		"go: downloading "*)
			((modules)) || say "downloading modules"
			modules=$((modules + 1))
			;;
		*[[:space:]:]*) printf '%s\n' "$line" >&2 ;;
		*) packages=$((packages + 1)) ;;
		esac
		if ((SECONDS >= next)); then
			if ((packages)); then say "$packages of $all packages, $((SECONDS - begin)) s"; else say "$modules modules, $((SECONDS - begin)) s"; fi
			next=$((SECONDS + 5))
		fi
	done
}

# stale FLAGS... sets all to the number of packages, and n to how many of them the build cache lacks. It reports only the first error: without
# its modules, the go command prints one for each import.
stale() {
	local found errors
	found=$(mktemp) errors=$(mktemp)
	if ! go list "$@" -deps -f '{{.Stale}}' ./cmd/muster 2>&1 >"$found" | tell 0 2>"$errors"; then
		say "$(head -n 1 "$errors")" >&2
		rm -f "$found" "$errors"
		fail "the go command cannot load what the demo needs. Without its modules, make run needs a network, or a module proxy in GOPROXY, once; or set MUSTER_RELEASE to the file of a release"
	fi
	read -r all n < <(awk '$1 == "true" { n++ } END { print NR, n + 0 }' "$found")
	rm -f "$found" "$errors"
}

# compile builds the binary, reports its progress, and sets binary. If most packages have never been compiled here, it makes a quick build in bin/quick, without what
# the demo does not need (tag quick), without inlining, without the pass that removes bounds checks, and without debugging information: that takes half of the time, and
# the demo is fast enough. Otherwise it makes the same bin/muster as `make build`.
compile() {
	local all n flags=(-trimpath)
	command -v go >/dev/null || fail "Go is needed to compile: https://go.dev/dl, or set MUSTER_RELEASE to the file of a release"
	binary=bin/muster$(go env GOEXE)
	stale "${flags[@]}"
	if ((n > all / 2)); then
		binary=bin/quick/muster$(go env GOEXE)
		flags+=(-tags=quick "-gcflags=all=-l -dwarf=false -d=ssa/prove/off" -ldflags=-w)
		stale "${flags[@]}"
	fi
	if ((n > all / 2)); then
		say "compiling $n packages, only what the demo needs, about one minute on two processors (make build compiles everything)"
	elif ((n > 1)); then
		say "compiling $n of $all packages"
	fi
	# Large packages compile an eighth faster without garbage collection; the largest then takes 0.7 GiB.
	GOGC=off GOMEMLIMIT=1GiB go build -v "${flags[@]}" -o "$binary" ./cmd/muster 2>&1 | tell "$n"
}

if [[ -n ${MUSTER_RELEASE:-} ]]; then
	[[ -f $MUSTER_RELEASE ]] || fail "MUSTER_RELEASE: there is no file $MUSTER_RELEASE"
	checked "$MUSTER_RELEASE" || fail "MUSTER_RELEASE requires a matching checksum"
	binary=$(unpacked "$MUSTER_RELEASE")
	[[ -n $binary ]] || fail "MUSTER_RELEASE: there is no file muster in $MUSTER_RELEASE"
	say "using $MUSTER_RELEASE; its checksum is correct"
elif binary=$(ofThisCommit) && [[ -n $binary ]] && checked "$binary"; then
	say "using $binary, which was made from this commit; its checksum is correct"
	binary=$(unpacked "$binary")
else
	compile
	if [[ ${1:-} == --compile ]]; then exit; fi
fi

unset MUSTER_RELEASE # variables with this prefix are settings
say "$binary demo ${DEMO_FLAGS:-}"
# shellcheck disable=SC2086
exec "$binary" demo ${DEMO_FLAGS:-}
