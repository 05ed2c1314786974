#!/usr/bin/env python3
"""each.py FOLDER CALL...: runs `make CALL` for each CALL, one after the other, and goes on after a failure.

A CALL is what stands after `make`: "lint", or "e2e VERSION=1.30.14". Prints one line for each when it ends: whether it
passed, its time, and the call. The output of each is in FOLDER. Exit code 1 if one failed.
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
    print(f"{len(calls)} calls of make; the output of each is in {folder}/", flush=True)
    began, failures = time.monotonic(), 0
    width = max(map(len, calls))
    for number, call in enumerate(calls, start=1):
        log, asked = log_of(folder, number, call), time.monotonic()
        passed = run(call, log)
        failures += not passed
        line = f"{'ok' if passed else 'FAILED':<6}  {clock(time.monotonic() - asked)}  {call:<{width}}"
        print(line.rstrip() if passed else f"{line}  see {log}", flush=True)
    print(f"{'FAILED' if failures else 'ok':<6}  {clock(time.monotonic() - began)}  "
          f"{len(calls) - failures} of {len(calls)} passed")
    sys.exit(FAILED if failures else 0)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
