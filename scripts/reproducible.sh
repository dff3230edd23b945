#!/usr/bin/env bash
# Builds a release of the last commit twice, in two directories and with nothing in common but the modules, and compares: scripts/reproducible.sh [TARGET...]
# Without targets it builds linux/amd64, which has every kind of artefact but a .zip.
set -euo pipefail
cd "$(dirname "$0")/.."

targets=("$@")
((${#targets[@]})) || targets=(linux/amd64)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for dir in "$work/first" "$work/second/of/two"; do
	git clone --quiet --shared . "$dir" # as releases are made: go build does not record the commit in a worktree
done
(cd "$work/first" && scripts/dist.sh "${targets[@]}" >/dev/null)
(cd "$work/second/of/two" && GOCACHE=$work/cache scripts/dist.sh "${targets[@]}" >/dev/null)
diff "$work/first/dist/SHA256SUMS" "$work/second/of/two/dist/SHA256SUMS" || { echo "the two builds differ"; exit 1; }
echo "two builds of $(git -C "$work/first" describe --tags --match 'v[0-9]*' --always) are the same, byte for byte:"
cat "$work/first/dist/SHA256SUMS"
