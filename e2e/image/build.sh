#!/usr/bin/env bash
# build.sh ARCHIVE NAME: builds the Dockerfile with buildah, without a docker engine, into an OCI archive.
#
# The build base is made of this machine's own Rust toolchain and C compiler, which are mounted into an empty image, so
# no image is pulled. What cargo has built is kept beside the archive, for the next time; the rest goes with the script.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
archive=$1 name=$2
base=localhost/build-base

[ "$(id -u)" = 0 ] || { echo "buildah needs root here: run it as root, or with sudo" >&2; exit 1; }

work=$(mktemp -d)
# In the storage every layer is a folder of its own, so that no kernel module is needed.
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

echo "building the image (minutes, when nothing is built yet); its log is shown when it fails" >&2
"${buildah[@]}" bud --isolation chroot --build-arg BUILD_IMAGE="$base" --build-arg REVISION="$(git rev-parse HEAD)" \
  --volume /usr:/usr:ro --volume "$toolchain:/rust:ro" --volume "$registry:/cargo/registry" \
  --volume "$kept/target:/build/target" --volume "$kept/tools:/tools" \
  --tag "$name" . >"$work/log" 2>&1 || { cat "$work/log" >&2; echo "the image could not be built" >&2; exit 1; }
rm -f "$archive"
"${buildah[@]}" push --quiet "$name" "oci-archive:$archive:$name"
