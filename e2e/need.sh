#!/usr/bin/env bash
# need.sh TOOL...: checks that the tools are installed before a long command starts. As root with apt-get, installs the
# missing tools whose packages are recent enough in any distribution. Otherwise says how to install them, and exits with 1.
set -euo pipefail

look() {
  packages=() missing=() current=()
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null && continue
    missing+=("$tool")
    case $tool in
      cargo) current+=(cargo) ;;
      go) current+=(golang-go) ;;
      cc) packages+=(gcc libc6-dev) ;;
      perf) packages+=(linux-perf) ;;
      *) packages+=("$tool") ;;
    esac
  done
}

install() {
  echo "Installing ${packages[*]} with apt-get" >&2
  apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"
}

look "$@"
if [ ${#packages[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  install >&2 || true
  hash -r
  look "$@"
fi
[ ${#missing[@]} -gt 0 ] || exit 0

all=("${current[@]}" "${packages[@]}")
{
  echo "Missing on this machine: ${missing[*]}. Install with"
  echo "    apt-get install ${all[*]}"
  [ ${#current[@]} = 0 ] ||
    echo "The Rust or Go of your distribution may be too old; current versions are at https://rustup.rs and https://go.dev/dl."
} >&2
exit 1
