#!/usr/bin/env python3
"""Checks an image: what it holds, its size, user, labels and bill of materials."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import zlib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# Where cargo-auditable puts the bill of materials: deflated JSON in a section of the binary.
SECTION = ".dep-v0"


def bill_of_materials(binary: Path) -> set[tuple[str, str]]:
    """Name and version of every crate that the binary says it was built from."""
    with tempfile.NamedTemporaryFile() as section:
        subprocess.run(["objcopy", "--dump-section", f"{SECTION}={section.name}", str(binary), "/dev/null"],
                       check=True)
        packages = json.loads(zlib.decompress(Path(section.name).read_bytes()))["packages"]
    return {(package["name"], package["version"]) for package in packages
            if package.get("kind", "runtime") == "runtime"}


def linked_crates() -> set[tuple[str, str]]:
    """The same from Cargo.lock: everything but the crates of tests and build scripts."""
    host = re.search(r"^host: (.*)$", subprocess.run(
        ["rustc", "-vV"], capture_output=True, text=True, check=True).stdout, re.M).group(1)
    tree = subprocess.run(
        ["cargo", "tree", "--locked", "--edges", "normal,no-proc-macro", "--target", host, "--prefix", "none",
         "--format", "{p}"], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    return {(name, version) for name, version in re.findall(r"^(\S+) v(\S+)", tree.stdout, re.M)}


def faults(config: dict, root: Path, limit: int, revision: str) -> list[str]:
    """What is wrong, one sentence each."""
    found = []

    def expect(holds: bool, otherwise: str) -> None:
        if not holds:
            found.append(otherwise)

    files = {"/" + str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
    expect(set(files) == {"/warmpool"}, f"it should hold /warmpool and nothing else, but holds {sorted(files)}")
    size = sum(path.stat().st_size for path in files.values())
    expect(0 < size < limit, f"it has {size} bytes, {limit} are allowed")
    expect(config.get("User") == "65532:65532", f"its user is {config.get('User')!r}, not the number 65532:65532")
    expect(config.get("Entrypoint") == ["/warmpool"], f"its entrypoint is {config.get('Entrypoint')}")
    expect(config.get("Cmd") == ["controller"], f"its command is {config.get('Cmd')}")

    package = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["package"]
    labels = config.get("Labels") or {}
    wanted = {"title": package["name"], "licenses": package["license"], "version": package["version"],
              "revision": revision}
    for name, value in wanted.items():
        key = f"org.opencontainers.image.{name}"
        expect(labels.get(key) == value, f"label {key} is {labels.get(key)!r}, not {value!r}")

    listed, linked = bill_of_materials(root / "warmpool"), linked_crates()
    expect(linked <= listed, f"its bill of materials lacks {sorted(linked - listed)}")
    print(f"{size / 1e6:.1f} MB, user {config.get('User')}, {len(listed)} crates in the bill of materials "
          f"({len(linked)} linked by Cargo.lock)")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="what `buildah inspect` says of the image")
    parser.add_argument("--root", type=Path, required=True, help="its files")
    parser.add_argument("--limit", type=int, required=True, help="the size it has to stay below, in bytes")
    parser.add_argument("--revision", required=True, help="the commit it was built from")
    args = parser.parse_args()
    config = json.loads(args.config.read_text())["OCIv1"]["config"]
    found = faults(config, args.root, args.limit, args.revision)
    for fault in found:
        print(f"FAILED: {fault}", file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
