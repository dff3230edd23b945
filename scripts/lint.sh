#!/usr/bin/env bash
# Checks format, go.mod and vet for every module of the repository, each as its users build it: without the workspace.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOWORK=off

unformatted=$(git ls-files --cached --others --exclude-standard '*.go' | xargs gofmt -l)
if [[ -n $unformatted ]]; then
	echo "not formatted (gofmt -w):" "$unformatted"
	exit 1
fi

# scripts/charts has the libraries of Helm and Kubernetes: scripts/packages.sh vets it.
for module in $(git ls-files --cached --others --exclude-standard go.mod '*/go.mod' ':!scripts/charts/go.mod'); do
	(
		cd "$(dirname "$module")"
		go mod tidy -diff
		GOGC=off GOMEMLIMIT=1GiB go vet ./... # compiles everything; this is faster without garbage collection
	)
done
go vet -tags=quick ./cmd/muster # the build of make run
