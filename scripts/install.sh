#!/usr/bin/env bash
# Installs Debian packages: scripts/install.sh PACKAGE...
set -euo pipefail

echo "installing $*"
as_root=()
((EUID == 0)) || as_root=(sudo)
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >/dev/null; }
if ! { apt update && apt install -y --no-install-recommends "$@"; }; then
	echo "could not install the Debian packages $*. On another system, install their equivalents." >&2
	exit 1
fi
