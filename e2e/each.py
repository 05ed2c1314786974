#!/usr/bin/env python3
"""each.py FOLDER CALL...: runs `make CALL` for each CALL, one after the other, and goes on after a failure.

A CALL is what stands after `make`: "lint", or "e2e VERSION=1.30.14". Prints one line for each when it ends: whether it
passed, its time, and the call. `partly`: it passed, and its output says what was NOT checked; it is run again next time. The
output of each is in FOLDER. Exit code 1 if one failed.

Hours may be interrupted: FOLDER/passed keeps which call passed on which commit. While nothing differs from that commit, such
a call is not run again; its line says `before`, and the time that it took then. Delete the file to run all again.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

FAILED = 1


def log_of(folder, number, call):
    """The file for the output of a call; the same call may come twice."""
    return folder / (f"{number:02}-" + re.sub(r"[^A-Za-z0-9.=-]+", "-", call) + ".log")


def clock(seconds):
    """Hours, minutes and seconds, always as wide."""
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60:2}:{minutes % 60:02}:{seconds:02}"


def git(*arguments):
    """What git prints; None outside a repository."""
    done = subprocess.run(["git", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def commit():
    """The commit that the files are at; None while a file differs from it."""
    return git("rev-parse", "HEAD") if git("status", "--porcelain") == "" else None


def passed_on(commit, memory):
    """The calls that passed on this commit, with the seconds that each took."""
    lines = memory.read_text().splitlines() if commit and memory.exists() else []
    kept = [line.split(maxsplit=2) for line in lines]
    return {call: int(seconds) for of, seconds, call in kept if of == commit}


def unchecked(log):
    """The first line of the output that says what was not checked, or None."""
    lines = log.read_text(errors="replace").splitlines()
    return next((line for line in lines if "NOT checked" in line), None)


def run(call, log):
    """Whether `make CALL` passes. Its input is closed: nobody is there to answer a question."""
    with log.open("w") as output:
        done = subprocess.run([os.environ.get("MAKE", "make"), *shlex.split(call)],
                              stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    return done.returncode == 0


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    folder, calls = pathlib.Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    memory, of = folder / "passed", commit()
    before = passed_on(of, memory)
    print(f"{len(calls)} calls of make; the output of each is in {folder}/", flush=True)
    if not before.keys().isdisjoint(calls):
        print(f"`before` marks what passed on this commit; delete {memory} to run it again", flush=True)
    total, failures = 0, 0
    width = max(map(len, calls))
    for number, call in enumerate(calls, start=1):
        log = log_of(folder, number, call)
        if call in before:
            seconds, said, hint = before[call], "before", ""
        else:
            asked = time.monotonic()
            passed = run(call, log)
            seconds = time.monotonic() - asked
            left_out = unchecked(log) if passed else None
            said, hint = ("ok", "") if passed else ("FAILED", f"see {log}")
            said, hint = ("partly", left_out) if left_out else (said, hint)
            failures += not passed
            # A call may change files, as a generator does: then it did not pass on the commit.
            if passed and not left_out and of and commit() == of:
                with memory.open("a") as lines:
                    lines.write(f"{of} {round(seconds)} {call}\n")
        total += seconds
        print(f"{said:<6}  {clock(seconds)}  {call:<{width}}  {hint}".rstrip(), flush=True)
    print(f"{'FAILED' if failures else 'ok':<6}  {clock(total)}  {len(calls) - failures} of {len(calls)} passed")
    sys.exit(FAILED if failures else 0)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
