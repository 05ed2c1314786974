#!/usr/bin/env python3
"""Checks what is said of processes. Run by `make unit`."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

import processes
from layout import is_free

# Much memory and many threads take long to end, as in an API server: the last of them closes the port.
LISTENER = """
import socket, sys, threading, time
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
memory = bytearray(b"x") * 200_000_000
for _ in range(50):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print(listener.getsockname()[1], flush=True)
time.sleep(60)
"""


class Processes(unittest.TestCase):
    def test_a_killed_process_has_given_its_port_back(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            record, log = folder / "record.json", folder / "log"
            for _ in range(3):
                log.unlink(missing_ok=True)
                process = processes.spawn([sys.executable, "-c", LISTENER], folder, log, record)
                try:
                    while not log.read_text().endswith("\n"):
                        self.assertTrue(process.alive(), log.read_text())
                    port = int(log.read_text())
                    self.assertFalse(is_free(port))
                finally:
                    processes.kill(record)
                self.assertTrue(is_free(port), f"port {port} of the killed process is taken")


if __name__ == "__main__":
    # Processes outlive what starts them here, which Python would warn of.
    unittest.main(warnings="ignore")
