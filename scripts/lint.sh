#!/usr/bin/env bash
# Format, tidy, vet and staticcheck, for every module of the repository, each as its users build it: without the workspace.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOWORK=off

staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2

unformatted=$(git ls-files --cached --others --exclude-standard '*.go' | xargs gofmt -l)
if [[ -n $unformatted ]]; then
	echo "not formatted (gofmt -w):" "$unformatted"
	exit 1
fi

GOBIN=$PWD/bin go install "$staticcheck"
for module in $(git ls-files --cached --others --exclude-standard go.mod '*/go.mod'); do
	(
		cd "$(dirname "$module")"
		go mod tidy -diff
		go vet ./...
		"$OLDPWD/bin/staticcheck" ./...
	)
done
