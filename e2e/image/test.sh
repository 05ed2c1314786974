#!/usr/bin/env bash
# Builds the Dockerfile with buildah, without a docker engine, and checks what comes out: make image-test
#
# The build base is made of this machine's own Rust toolchain and C compiler, which are mounted into an empty image, so
# no image is pulled. Everything is kept in a folder that goes with the script.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

limit_bytes=$((25 * 1000 * 1000))
base=localhost/build-base
image=localhost/warmpool

say() { printf '%s\n' "$*" >&2; }
fail() { say "FAILED: $*"; exit 1; }

[ "$(id -u)" = 0 ] || fail "buildah needs root here: run it as root, or with sudo"
e2e/need.sh cargo cc python3
command -v buildah >/dev/null || {
  say "buildah is missing; installing it: apt-get install buildah"
  apt-get install --yes --no-install-recommends buildah >&2
}

work=$(mktemp -d)
# In the storage every layer is a folder of its own, so that no kernel module is needed.
buildah=(buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs)
trap '"${buildah[@]}" rm --all >/dev/null 2>&1 || true; rm -rf "$work"' EXIT

# ---- the build base ----------------------------------------------------------------------------------

toolchain=$(rustc --print sysroot)
registry=${CARGO_HOME:-$HOME/.cargo}/registry
mkdir -p "$registry"
container=$("${buildah[@]}" from scratch)
root=$("${buildah[@]}" mount "$container")
mkdir -p "$root"/{etc,tmp,usr,rust,cargo/registry}
chmod 1777 "$root/tmp"
for link in bin lib lib64; do
  [ -L "/$link" ] && ln -s "usr/$link" "$root/$link"
done
cp -rL /etc/ssl "$root/etc/"
cp /etc/passwd /etc/group /etc/nsswitch.conf "$root/etc/"
[ ! -d /etc/alternatives ] || cp -a /etc/alternatives "$root/etc/"
"${buildah[@]}" config --env PATH=/rust/bin:/usr/bin:/bin --env CARGO_HOME=/cargo "$container"
"${buildah[@]}" commit --quiet --rm "$container" "$base" >/dev/null

# ---- the image ---------------------------------------------------------------------------------------

say "building the image (minutes: a release build from nothing); its log is shown when it fails"
revision=$(git rev-parse HEAD)
"${buildah[@]}" bud --isolation chroot --build-arg BUILD_IMAGE="$base" --build-arg REVISION="$revision" \
  --volume /usr:/usr:ro --volume "$toolchain:/rust:ro" --volume "$registry:/cargo/registry" \
  --tag "$image" . >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "the image could not be built"; }

# ---- what it is --------------------------------------------------------------------------------------

container=$("${buildah[@]}" from "$image")
root=$("${buildah[@]}" mount "$container")
"${buildah[@]}" inspect --type image "$image" >"$work/image.json"
python3 e2e/image/check.py --config "$work/image.json" --root "$root" --limit "$limit_bytes" --revision "$revision"

run() { "${buildah[@]}" run --isolation chroot "$container" -- /warmpool "$@"; }
version=$(run --version)
[ "$version" = "warmpool $(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)" ] ||
  fail "the binary in the image says it is $version"
run crds | cmp -s - <(for file in crds/*.yaml; do echo ---; cat "$file"; done) ||
  fail "the binary in the image prints other CRDs than those in crds/"
say "it runs: $version"
