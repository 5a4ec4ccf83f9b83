# SPDX-License-Identifier: BSD-3-Clause
"""Those who hand steps on, and servers that do so themselves, killed and stopped at random moments, again and again. Only in
the sweep (NESSIE_TEST_SWEEP=1); NESSIE_TEST_SEED=n repeats one."""
import os
import random
import signal
import time
import unittest

from harness import BUILD, read_file, wait_until
from sinks_test import MEGABYTE, Streams, steps_in

ROUNDS = 20 if "NESSIE_TEST_SWEEP" in os.environ else 0
SEED = int(os.environ.get("NESSIE_TEST_SEED", time.time_ns() % 1_000_000))


@unittest.skipUnless(ROUNDS, "in the sweep")
class KilledAndStopped(Streams):
    def setUp(self):
        super().setUp()
        print(f"NESSIE_TEST_SEED={SEED}", end=" ", flush=True)
        self.random = random.Random(SEED)

    def disturb(self, victims, name):
        """Kills one of them and starts it again, or stops it for a moment."""
        job, start = victims[name]
        if self.random.random() < 0.4:
            job.process.send_signal(signal.SIGSTOP)
            time.sleep(self.random.uniform(0, 1))
            job.process.send_signal(signal.SIGCONT)
            return
        job.process.kill()
        job.process.wait()
        victims[name] = (start(), start)

    def test_record_forward_send_and_receive_lose_nothing_and_double_nothing(self):
        there = self.serve("there")
        writer = self.write("flow", 3 * ROUNDS, "--bytes", str(2 * MEGABYTE))
        listening = self.stream("receive", "-o", "received.nc", "--append", "--listen", "127.0.0.1:0")
        address = listening.process.stdout.readline().strip()
        commands = {
            "record": ["record", "flow", "-o", "recorded.nc", "--append", "--as", "archive"],
            "forward": ["forward", "flow", "--to", there, "--append", "--subscription", "link"],
            "send": ["forward", "flow", "--to", address, "--subscription", "wire"],
            "receive": ["receive", "-o", "received.nc", "--append", "--listen", address[len("tcp://"):]]}
        starts = {name: lambda words=words: self.stream(*words) for name, words in commands.items()}
        victims = {name: (listening if name == "receive" else start(), start) for name, start in starts.items()}
        undisturbed = self.stream("record", "flow", "-o", "undisturbed.nc")
        self.wait_for_readers("flow", 4)
        copied = None
        for _ in range(ROUNDS):
            self.step(writer)
            if copied is None:
                copied = self.stream("record", "flow", "-o", "copied.nc", "--at", there, "--as", "archive")
            self.step(writer, self.random.choice((1, 2)))
            time.sleep(self.random.uniform(0, 0.2))
            self.disturb(victims, self.random.choice(list(victims)))
        self.end(writer)
        for job in (undisturbed, *(job for job, _ in victims.values()), copied):
            self.told(job)
        for path in ("recorded.nc", "copied.nc", "received.nc"):
            with self.subTest(path):
                self.assert_holds(self.path(path), steps_in(self.path("undisturbed.nc")))
        self.assert_same(self.path("recorded.nc"), self.path("undisturbed.nc"))

    def test_a_server_with_sinks_goes_on_where_it_was(self):
        there = self.serve("there")
        contact, folder = self.path("own.contact"), self.path("log")
        command = [os.path.join(BUILD, "bin", "nessie-streams"), "--announce", "file:" + contact, "--set", "streams.log=" + folder,
                   "--set", f"streams.sinks=record:flow={self.path('flow.nc')} forward:flow={there}"]
        self.env.update(NESSIE_STREAMS_AT="file:" + contact, NESSIE_STREAMS_DURABILITY="logged")

        def start():
            job = self.job(command)
            line = f"\npid = {job.process.pid}\n".encode()
            wait_until(lambda: os.path.exists(contact) and line in read_file(contact), "the contact file")
            return job
        victims, steps = {"server": (start(), start)}, 0
        writer = self.write("flow", 3 * ROUNDS, "--bytes", str(MEGABYTE))
        for _ in range(ROUNDS):
            count = self.random.choice((1, 2, 3))
            self.step(writer, count)
            steps += count
            time.sleep(self.random.choice((0, 0.1, 1)) * self.random.random())
            self.disturb(victims, "server")
        self.end(writer)
        self.servers.append(victims["server"][0])
        wait_until(lambda: steps_in(self.path("flow.nc")) == steps, "all steps in the file")
        self.assert_holds(self.path("flow.nc"), steps)
        self.told(self.stream("record", "flow", "-o", "copy.nc", "--at", there))
        self.assert_holds(self.path("copy.nc"), steps)


if __name__ == "__main__":
    unittest.main()
