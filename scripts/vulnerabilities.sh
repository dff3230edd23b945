#!/usr/bin/env bash
# Looks up known vulnerabilities in the code that each binary reaches. It queries the database over the network. If the database
# cannot be reached, the script reports that and succeeds, because the build has not become worse.
set -euo pipefail
cd "$(dirname "$0")/.."

govulncheck=golang.org/x/vuln/cmd/govulncheck@v1.8.0
database=${GOVULNDB:-https://vuln.go.dev}

if [[ $database == http* ]] && ! curl --silent --fail --output /dev/null --max-time 10 "$database/index/db.json"; then
	echo "not checked: the vulnerability database $database cannot be reached from here"
	exit 0
fi
GOBIN=$PWD/bin go install "$govulncheck"
bin/govulncheck -db "$database" work
