#!/usr/bin/env python3
"""Applies the mutants of mutants.toml one by one to a copy of the source and runs the suite named with each, and the random
walks on those of the explorer that survive it. A mutant with a story is run against that story on a real control plane
instead. Before that the same suites and stories have to pass on the copy as it is. Two copies are worked on side by side.

Exit code 1 when one survives, or is caught by another law or with other words than it is said to break. Arguments are parts of
names: only those mutants are run. With --check nothing is built: the source only has to hold what they replace.
"""

import collections
import concurrent.futures
import filecmp
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# A build and a short suite keep one processor busy, and little more.
COPIES = [ROOT / "target" / "mutants" / name for name in ("front", "back")]
# What the documents say of the number of safeguards. Two mutants may remove one, for a model and for a story.
SAID = {"README.md": "{} safeguards are removed", "docs/guarantees.md": "one of its {} safeguards"}
PARTS = ["Cargo.toml", "Cargo.lock", "clippy.toml", "src", "tests", "benches", "e2e/cluster", "crds", "config"]
# Without optimization across crates, a build after a change is short. All builds have it so, to share the other crates.
CARGO = ["cargo", "test", "--locked", "--config", "profile.dev.lto='off'"]
STORIES = [*CARGO, "--test", "apiserver"]
OWN_CODE = "profile.test.package.warmpool"
SUITES = [*CARGO, "--no-default-features", "--config", f"{OWN_CODE}.debug=false",
          "--config", f"{OWN_CODE}.debug-assertions=false"]
# These take millions of steps, so our own code is optimized: in many units, so that little is built again.
SEARCHES = ["explore", "autoscaling"]
OPTIMIZED = ["--config", "tests/explore/profile.toml", "--config", f"{OWN_CODE}.codegen-units=256"]
EXPLORER = "explore"
WALKS = "walks_through_larger_worlds"
# A story has deadlines, so builds and suites beside it give way.
GIVING_WAY = ["nice", "-n", "19"]
# The nearest worlds of a large scene. A mutant that needs more to be seen is left to the walks.
ENVIRONMENT = {"EXPLORE_STATES": "30000", "WARMPOOL_CLUSTER_BIN": str(ROOT / ".cluster" / "bin"), **os.environ}


class Processes:
    """The processes that run. Once they are ended, no other is started."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running = set()
        self.ended = False

    def run(self, command, copy, environment=ENVIRONMENT):
        """Runs a command in a copy of the source to its end. cargo lets one build at a time into a target folder, so each copy has
        its own."""
        environment = {**environment, "CARGO_TARGET_DIR": str(copy / "target")}
        with self.lock:
            if self.ended:
                sys.exit("interrupted")
            process = subprocess.Popen(command, cwd=copy, env=environment, text=True, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0)
            self.running.add(process)
        stdout, stderr = process.communicate()
        with self.lock:
            self.running.remove(process)
            if self.ended:
                sys.exit("interrupted")
        return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)

    def end(self):
        """Ends them with what they have started. A story ends its control plane before it ends itself."""
        with self.lock:
            self.ended = True
            for process in self.running:
                # cargo forwards no signal, so its group gets it. Until its pipes are closed, it counts as running.
                try:
                    os.killpg(process.pid, signal.SIGTERM)
                except ProcessLookupError:
                    pass


PROCESSES = Processes()


def copy_source(copy):
    """Makes a copy hold the source as it is now. Only what differs is written, and is newer than any build of it: cargo goes
    by times, and a file put back as it was would look built."""
    for part in PARTS:
        source, kept = ROOT / part, copy / part
        files = {path.relative_to(ROOT) for path in [source, *source.rglob("*")] if path.is_file()}
        for path in [path for path in kept.rglob("*") if path.is_file() and path.relative_to(copy) not in files]:
            path.unlink()
        for path in files:
            if not (copy / path).is_file() or not filecmp.cmp(ROOT / path, copy / path, shallow=False):
                (copy / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / path, copy / path)


def replaced(root, change):
    """The file of one replacement under a root, and what it holds after that."""
    path = root / change["file"]
    before = path.read_text()
    found = before.count(change["from"])
    if found != 1:
        sys.exit(f"{change['file']}: {found} places for {change['from'].strip()!r}, and there must be 1")
    return path, before.replace(change["from"], change["to"])


def mutate(copy, mutant):
    """Makes a copy hold the source with the replacements of a mutant."""
    copy_source(copy)
    for change in mutant["change"]:
        path, after = replaced(copy, change)
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
    return "apiserver" if "story" in mutant else mutant.get("test", EXPLORER)


def tests(test):
    """The command that builds and runs a test target."""
    if test == "apiserver":
        return STORIES
    return [*SUITES, *(OPTIMIZED if test in SEARCHES else []), "--test", test]


def build(what, copy, test):
    built = PROCESSES.run([*GIVING_WAY, *tests(test), "--no-run"], copy)
    if built.returncode != 0:
        sys.exit(f"{what} does not build:\n{built.stderr[-3000:]}")


def share_other_crates(test):
    """Gives the other copies what the first has built of other crates, where they have built nothing: cargo finds that as new
    as it was."""
    first, *others = COPIES
    new = [copy for copy in others if not (copy / "target").exists()]
    if new:
        copy_source(first)
        build("the operator as it is", first, test)
    for copy in new:
        shutil.copytree(first / "target", copy / "target", symlinks=True)


def breach(copy, test, suite):
    """The law that the suite sees broken and what it says of it, or None when it sees nothing."""
    name = f"suites::{suite}" if test == EXPLORER else suite
    run = PROCESSES.run([*GIVING_WAY, *tests(test), "--", "--include-ignored", "--exact", name], copy)
    if "running 1 test" not in run.stdout:
        sys.exit(f"there is no test {suite}:\n{run.stdout[-3000:]}{run.stderr[-3000:]}")
    if run.returncode == 0:
        return None
    said = re.search(r"(?:^|: )(I\d+): ([^;{\n]*)", run.stdout + run.stderr, re.MULTILINE)
    return said.groups() if said else (None, "a panic of the operator")


def fault(copy, mutant):
    """What the story of the mutant says of the operator, or None when it finds no fault."""
    environment = {**ENVIRONMENT, **mutant.get("environment", {})}
    run = PROCESSES.run([*STORIES, "--", mutant["story"]], copy, environment)
    if f"test {mutant['story']} " not in run.stdout:
        sys.exit(f"there is no story {mutant['story']}:\n{run.stdout[-3000:]}{run.stderr[-3000:]}")
    if run.returncode == 0:
        return None
    said = run.stdout.split(f"---- {mutant['story']} ----\n", 1)
    return said[-1].split("\n\nhistory: ", 1)[0]


def suites(mutant):
    """The suites that the mutant has to pass to survive, or its story."""
    if "story" in mutant:
        return [mutant["story"]]
    walks = [WALKS] if target(mutant) == EXPLORER else []
    return list(dict.fromkeys([mutant["suite"], *walks]))


def pass_unmutated(copy, test, suite, mutant):
    """A suite that fails without any mutant would catch every one."""
    copy_source(copy)
    build("the operator as it is", copy, test)
    if "story" in mutant:
        said = fault(copy, mutant)
    else:
        said = ": ".join(filter(None, breach(copy, test, suite) or []))
    if said:
        sys.exit(f"{suite} fails on the operator as it is, so it can judge no mutant: {said}")
    say(f"passes without a mutant: {suite}")


def judge(copy, mutant):
    """Whether the mutant was caught as it should be, and a sentence about it."""
    mutate(copy, mutant)
    build(f"the mutant {mutant['name']!r}", copy, target(mutant))
    if "story" in mutant:
        return judge_by_story(copy, mutant)
    laws = mutant["law"] if isinstance(mutant["law"], list) else [mutant["law"]]
    for suite in suites(mutant):
        if said := breach(copy, target(mutant), suite):
            law, what = said
            by = f"by {suite}: {law}: {what}" if law else f"by {suite}: {what}"
            if law in laws:
                return True, f"caught {by}"
            return False, f"CAUGHT BY ANOTHER LAW than {' or '.join(laws)}, {by}"
    return False, "SURVIVED"


def judge_by_story(copy, mutant):
    said = fault(copy, mutant)
    if said is None:
        return False, "SURVIVED"
    line = next((line for line in said.splitlines() if mutant["words"] in line), None)
    if line is None:
        return False, f"CAUGHT WITH OTHER WORDS than {mutant['words']!r} by {mutant['story']}: {said.splitlines()[:3]}"
    return True, f"caught by {mutant['story']}: {line[:200]}"


def say(line):
    """Prints a whole line at once, whatever another thread prints."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def side_by_side(call, jobs):
    """Calls `call` with a copy of the source and each job, and returns what it returned. The first copy takes the jobs from
    the front and the other from the back, so that each builds few of the test targets."""
    left, results = collections.deque(jobs), []

    def work(copy, take):
        while True:
            try:
                job = take()
            except IndexError:
                return
            results.append(call(copy, *job))

    with concurrent.futures.ThreadPoolExecutor(len(COPIES)) as threads:
        workers = [threads.submit(work, copy, take) for copy, take in zip(COPIES, [left.popleft, left.pop])]
        try:
            for worker in concurrent.futures.as_completed(workers):
                worker.result()
        except BaseException:
            PROCESSES.end()
            raise
    return results


def main():
    mutants = tomllib.loads((HERE / "mutants.toml").read_text())["mutant"]
    if sys.argv[1:] == ["--check"]:
        return check(mutants)
    wanted = [m for m in mutants if not sys.argv[1:] or any(part in m["name"] for part in sys.argv[1:])]
    if not wanted:
        sys.exit(f"no mutant has such a name: {' '.join(sys.argv[1:])}")
    # Searches come first, stories last: each copy then builds the tests of few kinds.
    kinds = [*SEARCHES, *sorted({target(mutant) for mutant in mutants} - {*SEARCHES, "apiserver"}), "apiserver"]
    wanted.sort(key=lambda mutant: kinds.index(target(mutant)))
    for received in (signal.SIGINT, signal.SIGTERM):
        signal.signal(received, end)
    share_other_crates(target(wanted[0]))
    named = {(target(mutant), suite): mutant for mutant in wanted for suite in suites(mutant)}
    side_by_side(pass_unmutated, [(*test_and_suite, mutant) for test_and_suite, mutant in named.items()])

    def judged(copy, mutant):
        as_said, verdict = judge(copy, mutant)
        say(f"{mutant['name']}: {verdict}")
        return as_said

    caught = sum(side_by_side(judged, [(mutant,) for mutant in wanted]))
    print(f"{caught} of {len(wanted)} mutants were caught as they should be")
    sys.exit(0 if caught == len(wanted) else 1)


def end(received, _):
    """Ends the run on a signal, with everything that it has started."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + received)


if __name__ == "__main__":
    main()
