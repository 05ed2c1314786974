#!/usr/bin/env bash
# prometheus.sh: prints the folder of prometheus and promtool. If the PATH has neither, unpacks Debian's package under
# .cluster/prometheus. Installing the package would start a Prometheus server on this machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if found=$(command -v prometheus) && command -v promtool >/dev/null; then
  dirname "$found"
  exit 0
fi

folder=$PWD/.cluster/prometheus
if [ ! -x "$folder/usr/bin/promtool" ]; then
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
    echo "prometheus and promtool are missing. Install them: https://prometheus.io/docs/prometheus/latest/installation" >&2
    exit 1
  }
  mkdir -p .cluster
  part=$(mktemp -d "$PWD/.cluster/prometheus.XXXXXX")
  trap 'rm -rf "$part"' EXIT
  (
    cd "$part"
    # A new machine has no package lists yet.
    apt-get download -qq prometheus 2>/dev/null || { apt-get update -qq && apt-get download -qq prometheus; }
    dpkg-deb -x prometheus_*.deb .
    rm prometheus_*.deb
  ) >&2
  rm -rf "$folder"
  mv "$part" "$folder"
  trap - EXIT
fi
echo "$folder/usr/bin"
