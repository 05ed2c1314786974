"""Which version of Kubernetes is built, and the Go module of one other than that of tools/."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from layout import HERE, ClusterError, asked_version, say

USUAL = HERE / "tools" / "kubernetes"
NAME = "k8s.io/kubernetes"


def version() -> str:
    """The version that is built: the one asked for, or that of tools/kubernetes."""
    return asked_version() or usual_version()


def usual_version() -> str:
    found = re.search(rf"{NAME} v(\d+\.\d+\.\d+)\b", (USUAL / "go.mod").read_text())
    if not found:
        raise ClusterError(f"tools/kubernetes/go.mod does not require {NAME}")
    return found[1]


def is_usual() -> bool:
    return version() == usual_version()


def write_module(folder: Path, programs: tuple[str, ...]) -> None:
    """Writes the module of the version into a folder, unless it is there. It requires what that
    version's own go.mod requires, with that version's settings of the language, and go.sum is
    checked against the checksum database, as for every module that is added."""
    if (folder / "go.mod").exists():
        return
    say(f"asking the Go module proxy what Kubernetes {version()} is built from")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".module-") as draft:
        Path(draft, "go.mod").write_text(module(Path(draft)))
        go(Path(draft), "list", "-mod=mod", "-deps", *programs)
        shutil.copytree(draft, folder)


def module(folder: Path) -> str:
    """A go.mod as tools/kubernetes has it: replace lines do not carry over to a module that
    depends on Kubernetes, and its staging modules are required at v0.0.0."""
    asked = f"{NAME}@v{version()}"
    theirs = json.loads(go(folder, "mod", "download", "-json", asked))["GoMod"]
    stated = json.loads(go(folder, "mod", "edit", "-json", theirs))
    staging = [replaced["Old"]["Path"] for replaced in stated["Replace"]
               if replaced["New"]["Path"].startswith("./staging/")]
    published = version().replace("1.", "v0.", 1)
    lines = ["module warmpool.dev/e2e/cluster/tools/kubernetes", f"go {stated['Go']}",
             *(f"godebug {each['Key']}={each['Value']}" for each in stated.get("Godebug") or []),
             *(f"replace {path} => {path} {published}" for path in staging),
             f"require {NAME} v{version()}"]
    return "\n".join(lines) + "\n"


def go(folder: Path, *arguments: str) -> str:
    """Runs go in a folder; what it prints."""
    done = subprocess.run(["go", *arguments], cwd=folder, capture_output=True, text=True,
                          env=os.environ | {"GOWORK": "off", "CGO_ENABLED": "0"})
    if done.returncode != 0:
        told = json.loads(done.stdout)["Error"] if done.stdout.startswith("{") else done.stderr
        raise ClusterError(f"no module for Kubernetes {version()}: {told.strip()}\n"
                           f"`go list -m -versions {NAME}` lists the versions there are")
    return done.stdout
