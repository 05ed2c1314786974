#!/usr/bin/env bash
# packages.sh [TOOL...]: installs the tools that a real node needs, and the tools named, from the distribution.
# Tools that are already in the PATH stay as they are: Docker's own containerd works as well as the distribution's.
set -euo pipefail

packages=()
for tool in containerd ctr runc busybox ip nft "$@"; do
  command -v "$tool" >/dev/null && continue
  case $tool in
    ctr) packages+=(containerd) ;;
    busybox) packages+=(busybox-static) ;;
    ip) packages+=(iproute2) ;;
    nft) packages+=(nftables) ;;
    *) packages+=("$tool") ;;
  esac
done
[ -x /usr/lib/cni/bridge ] || packages+=(containernetworking-plugins)
# The images contain busybox and no libraries, so busybox must be static.
if command -v busybox >/dev/null && ldd "$(command -v busybox)" >/dev/null 2>&1; then packages+=(busybox-static); fi
[ ${#packages[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "A real node needs these packages. Install them and try again: ${packages[*]}" >&2
  exit 1
fi
echo "Installing ${packages[*]} with apt-get" >&2
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >&2
