#!/usr/bin/env bash
# Tags the current commit as a release, with a tag for each module and the release notes as message: scripts/tag.sh 0.1.0
# It pushes nothing. CONTRIBUTING.md has the checklist.
set -euo pipefail
cd "$(dirname "$0")/.."

version=v${1:?usage: tag.sh VERSION}
libraries=(gameclient gameserver)

fail() { echo "$1" >&2; exit 1; }
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "the version is ${version#v}, want three numbers such as 0.1.0"
[[ -z $(git status --porcelain) ]] || fail "there are changes that are not committed"
for library in "${libraries[@]}"; do
	required=$(GOWORK=off go list -m -f '{{.Version}}' "github.com/musterhq/muster/$library")
	[[ $required == "$version" ]] || fail "go.mod requires $library $required, want $version"
done
chart=$(sed -n 's/^appVersion: "\(.*\)"$/\1/p' deploy/helm/muster/Chart.yaml)
[[ v$chart == "$version" ]] || fail "appVersion of deploy/helm/muster/Chart.yaml is $chart, want ${version#v}"
notes=$(scripts/release-notes.sh "$version")
for tag in "${libraries[@]/%//$version}" "$version"; do
	git tag --annotate --cleanup=verbatim --message="Muster ${version#v}"$'\n\n'"$notes" "$tag"
	echo "$tag"
done
