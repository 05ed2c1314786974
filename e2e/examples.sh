#!/usr/bin/env bash
# examples.sh: makes the examples ready to run, in .cluster/examples: the Go program, and a Python with the packages of the
# Python program; and the Rust example in cargo's target folder. Downloads and builds only what has changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$PWD/.cluster/examples
mkdir -p "$out"

cargo build --quiet --locked --example claim
(cd examples/go && ../../e2e/cluster/go_build.sh -ldflags "-s -w" -o "$out/claim-go" .)

if ! cmp -s examples/python/requirements.txt "$out/requirements.txt"; then
  rm -rf "$out/python" "$out/requirements.txt"
  python3 -m venv "$out/python" || {
    echo "Python cannot make virtual environments here. Install with: apt-get install python3-venv" >&2
    exit 1
  }
  "$out/python/bin/pip" install --quiet --disable-pip-version-check -r examples/python/requirements.txt
  cp examples/python/requirements.txt "$out/"
fi
