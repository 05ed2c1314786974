#!/usr/bin/env python3
"""side_by_side.py COMMAND...: runs tests in so many processes side by side, each as the shell's COMMAND says.

Most tests on a real control plane wait most of the time, so several processes, each with control planes of its own, take
little more time than one. Prints a line for each test when it ends, and what else a command says when the command ends.
What a failed command says comes last, where the log of a long run is read first. Exit code 1 if a command failed; the
others run to their end.
"""

import os
import signal
import subprocess
import sys
import threading

FAILED = 1
PRINTING = threading.Lock()


def say(text):
    """Prints whole lines, whatever another thread prints."""
    with PRINTING:
        sys.stdout.write(text)
        sys.stdout.flush()


def follow(command, process, failures):
    """Prints the line of each test as it comes, and everything else at the end, unless the command failed."""
    rest = []
    for line in process.stdout:
        if line.startswith("test ") and not line.startswith("test result"):
            say(line)
        else:
            rest.append(line)
    if process.wait() == 0:
        say("".join(rest))
    else:
        failures.append("".join(rest) + f"FAILED: {command}\n")


def main():
    commands = sys.argv[1:]
    if not commands:
        sys.exit(__doc__)
    processes = [
        subprocess.Popen(command, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, start_new_session=True)
        for command in commands
    ]

    def end(signum, _):
        # The tests end their control plane, and are waited for. cargo forwards no signal, so their group gets it.
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signum)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    failures = []
    followers = [
        threading.Thread(target=follow, args=[command, process, failures])
        for command, process in zip(commands, processes)
    ]
    for follower in followers:
        follower.start()
    for follower in followers:
        follower.join()
    say("".join(failures))
    sys.exit(FAILED if failures else 0)


if __name__ == "__main__":
    main()
