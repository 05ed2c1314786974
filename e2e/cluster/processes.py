"""Detached processes that are found again, and ended, by more than their pid."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from layout import write_private

POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Process:
    """A process we started. The pid alone could by now belong to a stranger, so the
    start time (in clock ticks since boot) and the command line are kept with it."""

    pid: int
    started: int
    argv: list[str]

    def alive(self) -> bool:
        """Whether this very process still runs. One that only waits to be reaped does not. One
        that is ending does: it shows no command line any more, and still holds its ports."""
        stat = read_stat(self.pid)
        if stat is None or stat.ended or stat.started != self.started:
            return False
        return argv_of(self.pid) in (self.argv, [])

    def send(self, number: signal.Signals) -> None:
        if self.alive():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return

    def wait_gone(self, seconds: float) -> bool:
        """Waits for the end of the process, true if it came in time."""
        deadline = time.monotonic() + seconds
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True


@dataclass(frozen=True)
class Stat:
    """What the kernel says of a process (proc_pid_stat(5))."""

    state: str
    threads: int
    started: int

    @property
    def ended(self) -> bool:
        """Whether nothing of it runs. Its first thread can end before the others, and it is
        their end that closes what the process has open."""
        return self.state == "X" or (self.state == "Z" and self.threads <= 1)


def read_stat(pid: int) -> Stat | None:
    """The name before the fields may hold blanks and brackets, so they are counted from the
    last bracket on."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Stat(state=fields[0], threads=int(fields[17]), started=int(fields[19]))


def argv_of(pid: int) -> list[str]:
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return raw.decode(errors="replace").split("\0")[:-1]


def spawn(argv: list[str], folder: Path, log: Path, record: Path) -> Process:
    """Starts a program in a session of its own, so that it outlives the caller's shell."""
    log.parent.mkdir(parents=True, exist_ok=True)
    record.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as output:
        child = subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
                                 stderr=subprocess.STDOUT, start_new_session=True)
    process = identify(child.pid)
    write_private(record, json.dumps(asdict(process), indent=1) + "\n")
    return process


def identify(pid: int) -> Process:
    """What tells a new child from any later process of that pid. The command line is
    asked of the kernel, which for a script names the interpreter first, and which shows
    none for the first instant of a program."""
    while True:
        stat = read_stat(pid)
        argv = argv_of(pid)
        if argv or stat is None or stat.ended:
            return Process(pid, stat.started if stat else 0, argv)


def load(record: Path) -> Process | None:
    """The process of a record, None when the part was never started or was stopped."""
    try:
        return Process(**json.loads(record.read_text()))
    except FileNotFoundError:
        return None


def running(record: Path) -> Process | None:
    process = load(record)
    return process if process and process.alive() else None


def end(records: list[Path], patience: float) -> None:
    """Ends processes together: TERM, then KILL for those that stay. Forgets them."""
    ending = {record: process for record in records if (process := load(record))}
    for process in ending.values():
        process.send(signal.SIGTERM)
    deadline = time.monotonic() + patience
    for record, process in ending.items():
        if not process.wait_gone(deadline - time.monotonic()):
            process.send(signal.SIGKILL)
            process.wait_gone(patience)
        record.unlink()


def kill(record: Path) -> None:
    """Ends a process as a crash would, and forgets it."""
    process = load(record)
    if process:
        process.send(signal.SIGKILL)
        process.wait_gone(5)
        record.unlink()
