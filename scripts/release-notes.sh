#!/usr/bin/env bash
# Prints the section of a release in CHANGELOG.md: scripts/release-notes.sh 0.1.0
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?usage: release-notes.sh VERSION}
notes=$(awk -v heading="## [${version#v}]" '
	/^## / { inside = index($0, heading) == 1; next }
	inside { print }
' CHANGELOG.md)
if [[ -z ${notes//[[:space:]]/} ]]; then
	echo "CHANGELOG.md has no section for ${version#v}" >&2
	exit 1
fi
sed '1{/^$/d}' <<<"$notes"
