#!/usr/bin/env bash
# Format, vet and staticcheck, for every module of the repository.
set -euo pipefail
cd "$(dirname "$0")/.."

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
		go vet ./...
		"$OLDPWD/bin/staticcheck" ./...
	)
done
