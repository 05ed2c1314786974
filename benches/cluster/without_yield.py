#!/usr/bin/env python3
"""Builds an operator whose refill does not yield to bindings, and copies it to the file named. It is the mutant of the rule: the
source is copied and changed as mutants.toml says, so that the operator of the checkout has no switch for it."""

import pathlib
import shutil
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "e2e" / "mutants"))
import mutants  # noqa: E402  (found only through the line above)

MUTANT = "refill at full speed while claims are being bound"


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FILE")
    file = pathlib.Path(sys.argv[1]).resolve()
    copy = ROOT / "target" / "without-yield"
    every = tomllib.loads((mutants.HERE / "mutants.toml").read_text())["mutant"]
    found = [mutant for mutant in every if mutant["name"] == MUTANT]
    if len(found) != 1:
        sys.exit(f"mutants.toml has {len(found)} mutants named {MUTANT!r}, and there must be 1")
    mutants.mutate(copy, found[0])
    target = copy / "target"
    build = ["cargo", "build", "--release", "--locked", "--bin", "warmpool", "--target-dir", str(target)]
    subprocess.run(build, cwd=copy, check=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(target / "release" / "warmpool", file)


if __name__ == "__main__":
    main()
