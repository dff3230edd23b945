#!/usr/bin/env bash
# Installs the tools that the tests need besides Go, if they are missing: gcc for the race detector, Debian's package of the AWS CLI,
# node for the AWS SDK for JavaScript, curl and jq for the guides, faketime for wrong clocks, Mono for the generated C# client, the core of the AWS SDK for Ruby, a browser for the console, and rsyslog
# for the export of the audit log. Installed tools need no network. Under CI also the proxies of the guide: on other machines, their packages would start
# web servers.
set -euo pipefail
cd "$(dirname "$0")/.."

# On a full disk, dozens of tests would fail after twenty minutes. A run adds up to 3 GB to the build cache and 2 GB of temporary files; the rest is a reserve.
declare -A needed=() used=()
room() { # GB DIRECTORY
	local above=$2 disk
	until [[ -d $above ]]; do above=$(dirname "$above"); done
	disk=$(df --output=target "$above" | tail -n 1)
	needed[$disk]=$((${needed[$disk]:-0} + $1))
	used[$disk]+="${used[$disk]:+, }$2"
}
room 4 "$(go env GOCACHE)"
room 3 "${TMPDIR:-/tmp}"
room 1 "$PWD"
for disk in "${!needed[@]}"; do
	free=$(($(df --output=avail -B 1MB "$disk" | tail -n 1)))
	if ((free < needed[$disk] * 1000)); then
		echo "the disk of ${used[$disk]} has $free MB free, and the tests need ${needed[$disk]}000 MB there: free some space, or set GOCACHE or TMPDIR to a directory on another disk"
		exit 1
	fi
done

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
if [[ -n ${CI:-} ]]; then
	need /usr/sbin/nginx nginx-light
	need /usr/sbin/haproxy haproxy
	need /usr/bin/caddy caddy
fi
[[ -x /usr/sbin/rsyslogd ]] || missing+=(rsyslog)
[[ -e /usr/lib/$(uname -m)-linux-gnu/rsyslog/lmnsd_gtls.so ]] || missing+=(rsyslog-gnutls)

# Waits in case a server does not answer, or another installation runs on this machine.
patiently() {
	for pause in 5 15 45; do
		"$@" && return
		echo "failed: $*; trying again in $pause s"
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
