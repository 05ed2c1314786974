#!/usr/bin/env python3
"""chart.py VERSION IMAGE SOURCE OUT: copies the chart for a release, with the image's repository as its default, and with the
image, the source and the changes of the version in its metadata."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
# The headings of a changelog, and what Artifact Hub calls them.
KINDS = {"Added": "added", "Changed": "changed", "Deprecated": "deprecated", "Removed": "removed", "Fixed": "fixed",
         "Security": "security"}


def changes(changelog: str, version: str) -> list[tuple[str, str]]:
    """The kind and the text of each change of a version."""
    section = re.search(rf"^## {re.escape(version)}\b.*?$(.*?)(?=^## |\Z)", changelog, re.M | re.S)
    found: list[tuple[str, str]] = []
    kind = "changed"
    for line in (section[1] if section else "").splitlines():
        if heading := re.match(r"### (\w+)", line):
            kind = KINDS.get(heading[1], "changed")
        elif line.startswith("- "):
            found.append((kind, line[2:]))
        elif line.startswith("  ") and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
    return found


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main() -> None:
    version, image, source, out = sys.argv[1:]
    shutil.copytree(REPO / "charts" / "warmpool", out)
    chart, values = Path(out) / "Chart.yaml", Path(out) / "values.yaml"
    text = chart.read_text().rstrip("\n")
    text += f"\n  artifacthub.io/images: |\n    - name: warmpool\n      image: {image}:{version}\n"
    text += "  artifacthub.io/changes: |\n"
    for kind, change in changes((REPO / "CHANGELOG.md").read_text(), version):
        text += f"    - kind: {kind}\n      description: {quoted(change)}\n"
    if source:
        text += f"sources:\n- {source}\n"
    chart.write_text(text)
    before = values.read_text()
    after = before.replace("  repository: warmpool\n", f"  repository: {image}\n")
    if before == after and image != "warmpool":
        sys.exit("error: values.yaml has no line `repository: warmpool`")
    values.write_text(after)


if __name__ == "__main__":
    main()
