# SPDX-License-Identifier: BSD-3-Clause
"""What tests of streams share: servers, and writers and readers whose steps can be checked (streams_peer.cpp)."""
import os
import re
import signal
import subprocess
import threading

from harness import BUILD, DEADLINE_S, ProcessTestCase, wait_until

PEER = os.path.join(BUILD, "tests", "streams_peer")
SERVER = os.path.join(BUILD, "bin", "nessie-streams")


class Lines:
    """A process, and the lines that it has written until now."""

    def __init__(self, case, command, env=None, **options):
        self.job = case.job(command, env=env, stderr=subprocess.STDOUT, **options)
        self.process = self.job.process
        self.lines = []
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def _listen(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def has(self, pattern):
        return next((line for line in list(self.lines) if re.match(pattern, line)), None)

    def wait_for(self, pattern, deadline_s=DEADLINE_S):
        def found():
            line = self.has(pattern)
            if line is None and self.process.poll() is not None:
                self.thread.join(5)
                line = self.has(pattern)
                if line is None:
                    raise AssertionError(f"ended with {self.process.returncode} before '{pattern}':\n" + "\n".join(self.lines[-20:]))
            return line
        return wait_until(found, lambda: f"'{pattern}' of\n" + "\n".join(self.lines[-20:]), deadline_s)

    def numbers(self, word):
        """Of all lines that begin with that word."""
        found = (re.match(rf"{word} (\d+)", line) for line in list(self.lines))
        return [int(match[1]) for match in found if match]

    def kill(self):
        self.process.kill()
        self.end()

    def stop(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def end(self, deadline_s=DEADLINE_S):
        """Its exit code."""
        try:
            code = self.process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"runs still after {deadline_s} s:\n" + "\n".join(self.lines[-20:])) from None
        self.thread.join(10)
        return code


class StreamsTestCase(ProcessTestCase):
    """Servers of streams are found by the folder of contact files, which is the test's own."""

    def server_command(self, *options, index=0, servers=1, log=True, listen="shm", within=()):
        """`within`: what the command begins with, as to enter a network namespace."""
        return [*within, SERVER, "--listen", listen, "--log", self.path("log") if log else "none", "--index", str(index), "--servers",
                str(servers), *options]

    def start_server(self, *options, env=None, **how):
        server = Lines(self, self.server_command(*options, **how), env)
        server.wait_for(r"\w+://")
        return server

    def write(self, steps, *options, name="s", within=(), env=None):
        return Lines(self, [*within, PEER, "write", str(steps), "--name", name, *map(str, options)], env)

    def read(self, *options, name="s", within=(), env=None):
        return Lines(self, [*within, PEER, "read", "--name", name, *map(str, options)], env)

    def end_servers(self, *servers):
        for server in servers:
            server.process.terminate()
            self.assertEqual(server.end(), 0, "\n".join(server.lines))

    def assert_saw(self, reader, steps):
        self.assertEqual(reader.numbers("step"), list(steps), "\n".join(reader.lines[-20:]))
