#!/usr/bin/env python3
"""stories.py PARTS: runs the tests against a real control plane, in so many processes side by side.

Each process has a control plane of its own and a part of the tests. Most tests wait most of the time, so two
parts take little more time than one. Prints a line for each test when it ends, and what a part says of its
failures at its end. Exit code 1 if a part failed.
"""

import os
import signal
import subprocess
import sys
import threading

TESTS = ["cargo", "test", "--locked", "--test", "apiserver"]
FAILED = 1
PRINTING = threading.Lock()


def say(text):
    """Prints whole lines, whatever another thread prints."""
    with PRINTING:
        sys.stdout.write(text)
        sys.stdout.flush()


def follow(part):
    """Prints the line of each test as it comes, and everything else at the end."""
    rest = []
    for line in part.stdout:
        if line.startswith("test ") and not line.startswith("test result"):
            say(line)
        else:
            rest.append(line)
    say("".join(rest))


def main():
    if len(sys.argv) != 2 or not sys.argv[1].isdigit() or int(sys.argv[1]) < 1:
        sys.exit(__doc__)
    count = int(sys.argv[1])
    if (built := subprocess.run([*TESTS, "--no-run"]).returncode) != 0:
        sys.exit(built)
    parts = [
        subprocess.Popen([*TESTS, "--quiet", "--", "--ignored"], env={**os.environ, "PART": f"{number}/{count}"},
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         start_new_session=True)
        for number in range(1, count + 1)
    ]

    def end(signum, _):
        # The tests end their control plane, and are waited for. cargo forwards no signal, so their group gets it.
        for part in parts:
            if part.poll() is None:
                os.killpg(part.pid, signum)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    followers = [threading.Thread(target=follow, args=[part]) for part in parts]
    for follower in followers:
        follower.start()
    for follower in followers:
        follower.join()
    sys.exit(FAILED if any([part.wait() != 0 for part in parts]) else 0)


if __name__ == "__main__":
    main()
