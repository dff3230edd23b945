#!/usr/bin/env bash
# Installs what the tests need beside Go, where it is missing: gcc for the race detector, the AWS CLI as Debian packages
# it, node for the AWS SDK for JavaScript, jq for the guides.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
need() { [[ -x $(command -v "$1") ]] || missing+=("$2"); }
need gcc gcc
need /usr/bin/aws awscli
need node nodejs
need npm npm
need jq jq

if ((${#missing[@]})); then
	echo "installing ${missing[*]}"
	as_root=()
	((EUID == 0)) || as_root=(sudo)
	"${as_root[@]}" apt-get update -qq
	DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

for package in $(git ls-files '*/package-lock.json'); do
	(cd "$(dirname "$package")" && npm ci --no-audit --no-fund --silent)
done
