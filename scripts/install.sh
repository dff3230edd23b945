#!/usr/bin/env bash
# Installs packages of Debian: scripts/install.sh PACKAGE...
set -euo pipefail

echo "installing $*"
as_root=()
((EUID == 0)) || as_root=(sudo)
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >/dev/null; }
if ! { apt update && apt install -y --no-install-recommends "$@"; }; then
	echo "not installed: what Debian has in the packages $*. On another system, install that by its own means." >&2
	exit 1
fi
