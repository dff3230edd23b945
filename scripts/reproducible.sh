#!/usr/bin/env bash
# Builds a release of the last commit twice, in two directories that share only the modules, and compares the results: scripts/reproducible.sh [TARGET...]
# Without targets it builds linux/amd64, which has every kind of artefact except a .zip.
set -euo pipefail
cd "$(dirname "$0")/.."

targets=("$@")
((${#targets[@]})) || targets=(linux/amd64)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for dir in "$work/first" "$work/second/of/two"; do
	git clone --quiet --shared . "$dir" # a clone, as for releases, because go build does not record the commit in a worktree
done
(cd "$work/first" && scripts/dist.sh "${targets[@]}" >/dev/null)
(cd "$work/second/of/two" && GOCACHE=$work/cache scripts/dist.sh "${targets[@]}" >/dev/null)
diff "$work/first/dist/SHA256SUMS" "$work/second/of/two/dist/SHA256SUMS" || { echo "the two builds differ"; exit 1; }
echo "two builds of $(git -C "$work/first" describe --tags --match 'v[0-9]*' --always) are identical:"
cat "$work/first/dist/SHA256SUMS"
