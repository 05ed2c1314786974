#!/usr/bin/env bash
# need.sh TOOL...: ends with 1 and says how to install what is missing, before anything long begins.
set -euo pipefail

packages=() missing=()
for tool in "$@"; do
  command -v "$tool" >/dev/null && continue
  missing+=("$tool")
  case $tool in
    cc) packages+=(gcc libc6-dev) ;;
    go) packages+=(golang-go) ;;
    *) packages+=("$tool") ;;
  esac
done
[ ${#missing[@]} -gt 0 ] || exit 0

{
  echo "Missing on this machine: ${missing[*]}. Install with"
  echo "    apt-get install ${packages[*]}"
  case " ${missing[*]} " in
    *" cargo "* | *" go "*)
      echo "Your distribution may carry too old a Rust or Go; the current ones are at https://rustup.rs and https://go.dev/dl." ;;
  esac
} >&2
exit 1
