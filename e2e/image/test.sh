#!/usr/bin/env bash
# Builds the Dockerfile with buildah, without a docker engine, and checks the image: make image-test
#
# The output of cargo stays in .cluster/image for the next build and for `make e2e-node`; the script removes the rest when it
# ends.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

limit_bytes=$((25 * 1000 * 1000))
image=localhost/warmpool
archive=.cluster/image/test.tar

say() { printf '%s\n' "$*" >&2; }
fail() { say "FAILED: $*"; exit 1; }

[ "$(id -u)" = 0 ] || fail "buildah needs root: run this command as root, or with sudo"
e2e/need.sh cargo cc python3
command -v buildah >/dev/null || {
  say "buildah is missing. Installing it: apt-get install buildah"
  apt-get install --yes --no-install-recommends buildah >&2
}

work=$(mktemp -d)
buildah=(buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs)
trap '"${buildah[@]}" rm --all >/dev/null 2>&1 || true; rm -rf "$work" "$archive"' EXIT
mkdir -p "$(dirname "$archive")"
e2e/image/build.sh "$archive" "$image"

# ---- the image ---------------------------------------------------------------------------------------

id=$("${buildah[@]}" pull --quiet "oci-archive:$archive")
container=$("${buildah[@]}" from "$id")
root=$("${buildah[@]}" mount "$container")
"${buildah[@]}" inspect --type image "$id" >"$work/image.json"
python3 e2e/image/check.py --config "$work/image.json" --root "$root" --limit "$limit_bytes" --revision "$(git rev-parse HEAD)"

run() { "${buildah[@]}" run --isolation chroot "$container" -- /warmpool "$@"; }
version=$(run --version)
[ "$version" = "warmpool $(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)" ] ||
  fail "the binary in the image says it is $version"
run crds | cmp -s - <(for file in crds/*.yaml; do echo ---; cat "$file"; done) ||
  fail "the binary in the image prints other CRDs than those in crds/"
say "it runs: $version"
