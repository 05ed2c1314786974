#!/usr/bin/env bash
# release.sh VERSION OUT: builds into OUT what a release of this version has and this machine can build: the plugin of its own
# platform and, with SOURCE, its manifest for krew, the chart, the CustomResourceDefinitions, a bill of materials, and SHA256SUMS over
# all.
#
#   IMAGE=REPOSITORY   the image's repository, written into the chart [default: warmpool]
#   SOURCE=URL         the address of the source, written into the chart and into the manifest for krew
#   BINARY=FILE        a binary that is built already
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=${1:?release.sh VERSION OUT} out=${2:?release.sh VERSION OUT}
helm=${WARMPOOL_CLUSTER_BIN:-.cluster/bin}/${WARMPOOL_HELM:-helm}

fail() { echo "error: $1" >&2; exit 1; }

# One version everywhere: a release that calls itself otherwise somewhere is not built.
grep -q "^version = \"$version\"$" Cargo.toml || fail "Cargo.toml does not say version = \"$version\""
for key in version appVersion; do
  grep -q "^$key: $version$" charts/warmpool/Chart.yaml || fail "charts/warmpool/Chart.yaml does not say $key: $version"
done
grep -q "image.version=\"$version\"" Dockerfile || fail "the Dockerfile does not say image.version=\"$version\""
grep -q "^## $version" CHANGELOG.md || fail "CHANGELOG.md has no section $version"

rm -rf "$out"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -z "${BINARY:-}" ]; then
  host=$(rustc -vV | sed -n 's/^host: //p')
  # As in the Dockerfile: one static file where the platform has that.
  case $host in *linux-gnu) export RUSTFLAGS="-C target-feature=+crt-static" ;; esac
  cargo build --release --locked --bin warmpool --target "$host"
  BINARY=target/$host/release/warmpool
fi
case $(uname -m) in x86_64) machine=amd64 ;; aarch64 | arm64) machine=arm64 ;; *) machine=$(uname -m) ;; esac
system=$(uname -s | tr '[:upper:]' '[:lower:]')

cp "$BINARY" "$work/kubectl-warmpool"
cp LICENSE "$work/"
# The same bytes for the same input: sorted names, no owner, the time of the commit.
when=$(git log -1 --format=%ct 2>/dev/null || echo 0)
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$when" -cf - LICENSE kubectl-warmpool |
  gzip -n >"$out/kubectl-warmpool-$version-$system-$machine.tar.gz"
if [ -n "${SOURCE:-}" ]; then
  packaging/krew.py "$version" "$SOURCE" "$out"
else
  echo "no manifest for krew: it names the address of the plugin, so it needs SOURCE=URL" >&2
fi

"$BINARY" crds >"$out/warmpool-crds-$version.yaml"
packaging/chart.py "$version" "${IMAGE:-warmpool}" "${SOURCE:-}" "$work/warmpool"
"$helm" package "$work/warmpool" --destination "$out" >/dev/null
packaging/bill_of_materials.py "$version" >"$out/warmpool-$version.cdx.json"

(cd "$out" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" . && sha256sum --check --quiet SHA256SUMS)
ls -l "$out"
