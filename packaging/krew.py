#!/usr/bin/env python3
"""krew.py VERSION SOURCE FOLDER: writes into FOLDER the manifest by which krew installs the plugin, with each platform whose archive
is there. SOURCE is the address of the repository, whose release has the archives."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

MANIFEST = """\
# kubectl krew install --manifest={name}
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: warmpool
spec:
  version: v{version}
  homepage: {source}
  shortDescription: Claim warm sandboxes (pods), and see what their pools do
  description: |
    Claims sandboxes (pods) of warmpool's pools and runs commands in them, explains why a claim, a pool or a sandbox is in its state,
    shows what the operator would do next, and controls rollouts as kubectl does for Deployments. The warmpool operator has to run in
    the cluster.
  caveats: |
    kubectl completes the plugin's verbs and flags when it finds it under a second name in the PATH:
      ln -s kubectl-warmpool ~/.krew/bin/kubectl_complete-warmpool
  platforms:
"""
PLATFORM = """\
  - selector:
      matchLabels:
        os: {system}
        arch: {machine}
    uri: {source}/releases/download/v{version}/{archive}
    sha256: {digest}
    bin: kubectl-warmpool
    files:
    - from: kubectl-warmpool
      to: .
    - from: LICENSE
      to: .
"""


def main() -> None:
    version, source, folder = sys.argv[1], sys.argv[2].rstrip("/"), Path(sys.argv[3])
    if not re.match(r"https://\S+$", source):
        sys.exit(f"error: {source!r} is not the address of a repository; write SOURCE=https://...")
    archives = sorted(folder.glob(f"kubectl-warmpool-{version}-*.tar.gz"))
    if not archives:
        sys.exit(f"error: {folder} has no archive of the plugin of version {version}")
    manifest = folder / f"kubectl-warmpool-{version}-krew.yaml"
    text = MANIFEST.format(name=manifest.name, version=version, source=source)
    for archive in archives:
        system, machine = archive.name.removeprefix(f"kubectl-warmpool-{version}-").removesuffix(".tar.gz").split("-")
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        text += PLATFORM.format(system=system, machine=machine, source=source, version=version, archive=archive.name, digest=digest)
    manifest.write_text(text)


if __name__ == "__main__":
    main()
