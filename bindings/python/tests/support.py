# SPDX-License-Identifier: BSD-3-Clause
"""What the tests share: processes that they start and end, and states that they wait for."""
import os
import subprocess
import threading
import time
import unittest

from nessie import nssi

PROGRAMS = os.environ["NESSIE_TEST_PROGRAMS"]
DEADLINE_S = 60


def program(name):
    return os.path.join(PROGRAMS, name)


def wait_until(condition, what):
    """Polls `condition` until it returns something true, and returns that."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.005)
    raise AssertionError(f"waited {DEADLINE_S} s for: {what}")


class Serving:
    """A runtime that serves on a thread of its own."""

    def __init__(self, *servers, **options):
        self.runtime = nssi.Runtime.open(transports=["shm"], **options)
        for server in servers:
            server.add_to(self.runtime)
        self._thread = threading.Thread(target=self.runtime.run)
        self._thread.start()

    def __exit__(self, *_):
        self.runtime.stop()
        self._thread.join()
        self.runtime.close()


class ProcessCase(unittest.TestCase):
    """Ends the processes of its tests."""

    def start(self, *command, **options):
        """A process whose first line of output is returned with it."""
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, **options)
        self.addCleanup(self._end, process)
        return process, process.stdout.readline().strip()

    def start_peer(self, language, **options):
        """A service of fields.x (tests/languages), and its URL."""
        return self.start(program(f"fields_peer_{language}"), "serve", "shm", **options)

    def _end(self, process):
        process.kill()
        process.wait(DEADLINE_S)
        process.stdout.close()
