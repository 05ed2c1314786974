#!/usr/bin/env python3
"""Applies the mutants of mutants.toml one by one to a copy of the source and runs the suite named with each, and the random
walks on those of the explorer that survive it. A mutant with a story is run against that story on a real control plane
instead. Before that the same suites and stories have to pass on the copy as it is.

Exit code 1 when one survives, or is caught by another law or with other words than it is said to break. Arguments are parts of
names: only those mutants are run. With --check nothing is built: the source only has to hold what they replace.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COPY = ROOT / "target" / "mutants"
# What the documents say of the number of safeguards. Two mutants may remove one, for a model and for a story.
SAID = {"README.md": "{} safeguards are removed", "docs/guarantees.md": "one of its {} safeguards"}
PARTS = ["Cargo.toml", "Cargo.lock", "clippy.toml", "src", "tests", "benches", "e2e/cluster", "crds", "config"]
# A build for each mutant and a short search: many units and no optimization across them, so that little is built again.
BUILD = ["cargo", "test", "--locked", "--no-default-features", "--config", "tests/explore/profile.toml",
         "--config", "profile.test.lto='off'", "--config", "profile.test.package.warmpool.codegen-units=256", "--test"]
STORIES = ["cargo", "test", "--locked", "--test", "apiserver"]
EXPLORER = "explore"
WALKS = "walks_through_larger_worlds"
# The nearest worlds of a large scene. A mutant that needs more to be seen is left to the walks.
ENVIRONMENT = {"EXPLORE_STATES": "30000", "WARMPOOL_CLUSTER_BIN": str(ROOT / ".cluster" / "bin"), **os.environ}


def copy_source():
    """The source as it is now, newer than any build of it: cargo goes by times, and a file put back as it was would look
    built. What was built of other crates stays from run to run."""
    COPY.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        source, copy = ROOT / part, COPY / part
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(source, copy, copy_function=shutil.copy)
        else:
            shutil.copy2(source, copy)


def replaced(root, change):
    """The file of one replacement under a root, and what it holds after that."""
    path = root / change["file"]
    before = path.read_text()
    found = before.count(change["from"])
    if found != 1:
        sys.exit(f"{change['file']}: {found} places for {change['from'].strip()!r}, and there must be 1")
    return path, before.replace(change["from"], change["to"])


def mutate(change):
    """Makes one replacement in the copy."""
    path, after = replaced(COPY, change)
    path.write_text(after)


def check(mutants):
    """Ends with an error unless every replacement can be made, and the documents say how many there are."""
    for change in (change for mutant in mutants for change in mutant["change"]):
        replaced(ROOT, change)
    safeguards = len({repr(mutant["change"]) for mutant in mutants})
    for document, said in SAID.items():
        if said.format(safeguards) not in (ROOT / document).read_text():
            sys.exit(f"{document} does not say: {said.format(safeguards)}")
    print(f"{len(mutants)} mutants of {safeguards} safeguards can be made")


def target(mutant):
    """The test target that is to catch the mutant."""
    return mutant.get("test", EXPLORER)


def build(what, command):
    built = subprocess.run([*command, "--no-run"], cwd=COPY, capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit(f"{what} does not build:\n{built.stderr[-3000:]}")


def breach(test, suite):
    """The law that the suite sees broken and what it says of it, or None when it sees nothing."""
    name = f"suites::{suite}" if test == EXPLORER else suite
    command = [*BUILD, test, "--", "--include-ignored", "--exact", name]
    run = subprocess.run(command, cwd=COPY, capture_output=True, text=True, env=ENVIRONMENT)
    if "running 1 test" not in run.stdout:
        sys.exit(f"there is no test {suite}:\n{run.stdout[-3000:]}{run.stderr[-3000:]}")
    if run.returncode == 0:
        return None
    said = re.search(r"(?:^|: )(I\d+): ([^;{\n]*)", run.stdout + run.stderr, re.MULTILINE)
    return said.groups() if said else (None, "a panic of the operator")


def fault(mutant):
    """What the story of the mutant says of the operator, or None when it finds no fault."""
    environment = {**ENVIRONMENT, **mutant.get("environment", {})}
    test = [*STORIES, "--", mutant["story"]]
    run = subprocess.run(test, cwd=COPY, capture_output=True, text=True, env=environment)
    if f"test {mutant['story']} " not in run.stdout:
        sys.exit(f"there is no story {mutant['story']}:\n{run.stdout[-3000:]}{run.stderr[-3000:]}")
    if run.returncode == 0:
        return None
    said = run.stdout.split(f"---- {mutant['story']} ----\n", 1)
    return said[-1].split("\n\nhistory: ", 1)[0]


def suites(mutant):
    walks = [WALKS] if target(mutant) == EXPLORER else []
    return dict.fromkeys([mutant["suite"], *walks])


def pass_unmutated(mutants):
    """A suite that fails without any mutant would catch every one."""
    copy_source()
    of_suites = [mutant for mutant in mutants if "suite" in mutant]
    for test in dict.fromkeys(target(mutant) for mutant in of_suites):
        build("the operator as it is", [*BUILD, test])
    for test, suite in dict.fromkeys((target(mutant), suite) for mutant in of_suites for suite in suites(mutant)):
        if said := breach(test, suite):
            sys.exit(f"{suite} fails on the operator as it is, so it can judge no mutant: {': '.join(filter(None, said))}")
        print(f"passes without a mutant: {suite}", flush=True)
    of_stories = [mutant for mutant in mutants if "story" in mutant]
    if of_stories:
        build("the operator as it is", STORIES)
    for mutant in {mutant["story"]: mutant for mutant in of_stories}.values():
        if said := fault(mutant):
            sys.exit(f"{mutant['story']} fails on the operator as it is, so it can judge no mutant: {said}")
        print(f"passes without a mutant: {mutant['story']}", flush=True)


def judge(mutant):
    """Whether the mutant was caught as it should be, and a sentence about it."""
    if "story" in mutant:
        return judge_by_story(mutant)
    test = target(mutant)
    build("the mutant", [*BUILD, test])
    laws = mutant["law"] if isinstance(mutant["law"], list) else [mutant["law"]]
    for suite in suites(mutant):
        if said := breach(test, suite):
            law, what = said
            by = f"by {suite}: {law}: {what}" if law else f"by {suite}: {what}"
            if law in laws:
                return True, f"caught {by}"
            return False, f"CAUGHT BY ANOTHER LAW than {' or '.join(laws)}, {by}"
    return False, "SURVIVED"


def judge_by_story(mutant):
    build("the mutant", STORIES)
    said = fault(mutant)
    if said is None:
        return False, "SURVIVED"
    line = next((line for line in said.splitlines() if mutant["words"] in line), None)
    if line is None:
        return False, f"CAUGHT WITH OTHER WORDS than {mutant['words']!r} by {mutant['story']}: {said.splitlines()[:3]}"
    return True, f"caught by {mutant['story']}: {line[:200]}"


def main():
    mutants = tomllib.loads((HERE / "mutants.toml").read_text())["mutant"]
    if sys.argv[1:] == ["--check"]:
        return check(mutants)
    wanted = [m for m in mutants if not sys.argv[1:] or any(part in m["name"] for part in sys.argv[1:])]
    pass_unmutated(wanted)
    caught = 0
    for mutant in wanted:
        copy_source()
        for change in mutant["change"]:
            mutate(change)
        as_said, verdict = judge(mutant)
        caught += as_said
        print(f"{mutant['name']}: {verdict}", flush=True)
    print(f"{caught} of {len(wanted)} mutants were caught as they should be")
    sys.exit(0 if wanted and caught == len(wanted) else 1)


if __name__ == "__main__":
    main()
