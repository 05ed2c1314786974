#!/usr/bin/env python3
"""bill_of_materials.py VERSION: prints the crates of the binary as a CycloneDX document. Reads Cargo.lock and cargo's metadata,
and nothing from the network."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]


def metadata() -> dict:
    host = next(line.removeprefix("host: ") for line in subprocess.run(
        ["rustc", "-vV"], check=True, capture_output=True, text=True).stdout.splitlines() if line.startswith("host: "))
    return json.loads(subprocess.run(
        ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", host],
        cwd=REPO, check=True, capture_output=True, text=True).stdout)


def linked(found: dict) -> set[str]:
    """The packages that the binary is built from: not those of tests alone."""
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    seen: set[str] = set()
    ahead = [found["resolve"]["root"]]
    while ahead:
        package = ahead.pop()
        if package in seen:
            continue
        seen.add(package)
        ahead.extend(needed["pkg"] for needed in nodes[package]["deps"]
                     if any(kind["kind"] != "dev" for kind in needed["dep_kinds"]))
    return seen


def component(package: dict, checksums: dict[tuple[str, str], str]) -> dict:
    name, version = package["name"], package["version"]
    described = {"type": "library", "name": name, "version": version, "purl": f"pkg:cargo/{name}@{version}",
                 "bom-ref": f"pkg:cargo/{name}@{version}"}
    if package["license"]:
        described["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum := checksums.get((name, version)):
        described["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return described


def main() -> None:
    version = sys.argv[1]
    lock = tomllib.loads((REPO / "Cargo.lock").read_text())
    checksums = {(package["name"], package["version"]): package["checksum"]
                 for package in lock["package"] if "checksum" in package}
    found = metadata()
    ids = linked(found) - {found["resolve"]["root"]}
    packages = sorted((p for p in found["packages"] if p["id"] in ids), key=lambda p: (p["name"], p["version"]))
    json.dump({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {"type": "application", "name": "warmpool", "version": version,
                                   "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": [component(package, checksums) for package in packages],
    }, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
