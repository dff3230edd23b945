#!/usr/bin/env bash
# Builds and vets each commit since a base, in its own worktree, so that all of them can be bisected.
set -euo pipefail
cd "$(dirname "$0")/.."

export GOWORK=off # each module as its users build it

base=$(git merge-base "${1:?usage: commits.sh BASE}" HEAD)
commits=$(git rev-list --reverse --no-merges "$base"..HEAD)
tree=$(mktemp -d)
trap 'git worktree remove --force "$tree"' EXIT
git worktree add --quiet --detach "$tree" "$base"

for commit in $commits; do
	git -C "$tree" checkout --quiet "$commit"
	printf '== %s\n' "$(git log -1 --format='%h %s' "$commit")"
	for module in $(git -C "$tree" ls-files go.mod '*/go.mod'); do
		(cd "$tree/$(dirname "$module")" && go build ./... && go vet ./...)
	done
done
echo "$(wc -w <<<"$commits") commits compile"
