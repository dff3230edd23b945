#!/usr/bin/env bash
# Installs what the tests need beside Go, where it is missing: gcc for the race detector, the AWS CLI as Debian packages
# it, node for the AWS SDK for JavaScript, curl and jq for the guides, faketime for wrong clocks, Mono for the generated C# client, the core of the AWS SDK for Ruby, a browser for the console, rsyslog for the export of the audit log. What is there already
# needs no network.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
need() { [[ -x $(command -v "$1") ]] || missing+=("$2"); }
need gcc gcc
need /usr/bin/aws awscli
need node nodejs
need npm npm
need curl curl
need jq jq
need faketime faketime
need mono mono-devel
need mcs mono-devel
need chromium chromium
need ruby ruby
ruby -e 'require "aws-sdk-core"' 2>/dev/null || missing+=(ruby-aws-sdk-core ruby-rexml)
[[ -x /usr/sbin/rsyslogd ]] || missing+=(rsyslog)
[[ -e /usr/lib/$(uname -m)-linux-gnu/rsyslog/lmnsd_gtls.so ]] || missing+=(rsyslog-gnutls)

# A server that does not answer, or another installation on this machine, is gone in a while.
patiently() {
	for pause in 5 15 45; do
		"$@" && return
		echo "failed: $*; again in $pause s"
		sleep "$pause"
	done
	"$@"
}

if ((${#missing[@]})); then
	patiently scripts/install.sh "${missing[@]}"
fi

if ! node -e 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)'; then
	echo "node $(node --version): want 20 or later, as the AWS SDK for JavaScript does; Debian 12 has an older one"
	exit 1
fi

modules() { npm ci --no-audit --no-fund --silent --prefer-offline && cp package-lock.json node_modules/installed; }
for package in $(git ls-files '*/package-lock.json'); do
	pushd "$(dirname "$package")" >/dev/null
	cmp -s package-lock.json node_modules/installed || patiently modules
	popd >/dev/null
done
