#!/usr/bin/env bash
# build.sh ARCHIVE NAME: builds the Dockerfile with buildah, without a docker engine, into an OCI archive.
#
# The base image of the build is empty, with this machine's Rust toolchain and C compiler mounted into it, so no image is
# pulled. The output of cargo stays beside the archive for the next build; the script removes the rest when it ends.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
archive=$1 name=$2
base=localhost/build-base

[ "$(id -u)" = 0 ] || { echo "buildah needs root: run this command as root, or with sudo" >&2; exit 1; }

work=$(mktemp -d)
# The storage driver vfs keeps every layer in its own folder, so it needs no kernel module.
buildah=(buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs)
trap '"${buildah[@]}" rm --all >/dev/null 2>&1 || true; rm -rf "$work"' EXIT

toolchain=$(rustc --print sysroot)
registry=${CARGO_HOME:-$HOME/.cargo}/registry
kept=$(dirname "$(realpath "$archive")")
mkdir -p "$registry" "$kept"/{target,tools}
container=$("${buildah[@]}" from scratch)
root=$("${buildah[@]}" mount "$container")
mkdir -p "$root"/{etc,tmp,usr,rust,cargo/registry}
chmod 1777 "$root/tmp"
for link in bin lib lib64; do
  if [ -L "/$link" ]; then ln -s "usr/$link" "$root/$link"; fi
done
cp -rL /etc/ssl "$root/etc/"
cp /etc/passwd /etc/group /etc/nsswitch.conf "$root/etc/"
if [ -d /etc/alternatives ]; then cp -a /etc/alternatives "$root/etc/"; fi
"${buildah[@]}" config --env PATH=/rust/bin:/usr/bin:/bin --env CARGO_HOME=/cargo "$container"
"${buildah[@]}" commit --quiet --rm "$container" "$base" >/dev/null

echo "Building the image (some minutes the first time). A failed build shows its log." >&2
"${buildah[@]}" bud --isolation chroot --build-arg BUILD_IMAGE="$base" --build-arg REVISION="$(git rev-parse HEAD)" \
  --volume /usr:/usr:ro --volume "$toolchain:/rust:ro" --volume "$registry:/cargo/registry" \
  --volume "$kept/target:/build/target" --volume "$kept/tools:/tools" \
  --tag "$name" . >"$work/log" 2>&1 || { cat "$work/log" >&2; echo "the image could not be built" >&2; exit 1; }
rm -f "$archive"
"${buildah[@]}" push --quiet "$name" "oci-archive:$archive:$name"
