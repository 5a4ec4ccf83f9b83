# SPDX-License-Identifier: BSD-3-Clause
"""Files that outlive their servers: a program's servers are killed one after the other while it runs, and it is told of
nothing; its files are those that it writes natively."""
import os
import random
import signal
import subprocess
import threading
import unittest

from harness import SANITIZER, ProcessTestCase, mpiexec, read_file

SWEEP = os.environ.get("NESSIE_TEST_SWEEP") == "1"
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "durability", "program.c")
PAUSE_MS = 30
REST_S = 0.3        # until another server has a copy again
SAFE_S = 0.25       # until what another server had a copy of is in the files
MOST_KILLED = 5     # a server that dies more often is not started again
SETUPS = [("logged", 1), ("logged", 2), ("replicated", 2), ("durable", 1), ("durable", 2)]


class Killer(threading.Thread):
    """Kills one server of a job at a time, at random moments, while all of them listen and have done so for a while."""

    def __init__(self, job, seed):
        super().__init__()
        self.job, self.random, self.killed = job, random.Random(seed), 0
        self.is_over = threading.Event()

    def listening(self):
        """The servers, if all of them listen."""
        servers = [each for each in self.job.descendants("nessied") if "--run-dir" in each.words]
        if not servers:
            return []
        words = servers[0].words
        folder, count = words[words.index("--run-dir") + 1], int(words[words.index("--servers") + 1])
        urls = [os.path.join(folder, f"server.{index}.url") for index in range(count)]
        return servers if len(servers) == count and all(os.path.exists(url) for url in urls) else []

    def run(self):
        while self.killed < MOST_KILLED and not self.is_over.wait(self.random.uniform(0, 1.2)):
            before = self.listening()
            self.is_over.wait(REST_S)
            after = self.listening()
            if after and {each.pid for each in before} == {each.pid for each in after}:
                self.kill_some(after)

    def kill_some(self, servers):
        self.kill(self.random.choice(servers).pid)

    def kill(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
            self.killed += 1
        except ProcessLookupError:
            pass   # it ended meanwhile

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.join()


class KillerOfNeighbours(Killer):
    """Kills a server, and soon after it the one of which that had copies."""

    def kill_some(self, servers):
        by_index = {int(each.words[each.words.index("--index") + 1]): each.pid for each in servers}
        first = self.random.randrange(len(by_index))
        self.kill(by_index[first])
        self.is_over.wait(SAFE_S)
        self.kill(by_index[(first - 1) % len(by_index)])


class Durability(ProcessTestCase):
    def setUp(self):
        super().setUp()
        for each in ("native", "logs"):
            os.mkdir(self.path(each))
        self.program = self.path("program")
        subprocess.run(["mpicc.openmpi", "-O1", *SANITIZER, "-o", self.program, SOURCE, "-lpnetcdf"], check=True)

    def command(self, folder, steps, pause_ms=PAUSE_MS):
        return mpiexec(2, self.program, self.path(folder), str(steps), str(pause_ms))

    def run_natively(self, steps):
        code, out, err = self.run_command(self.command("native", steps, pause_ms=0))
        self.assertEqual(code, 0, out + err)

    def run_with_a_killer(self, durability, servers, steps, seed, killer_of=Killer):
        folder = f"{durability}.{servers}.{seed}"
        os.mkdir(self.path(folder))
        options = ["--durability", durability, "--servers", str(servers), "--log", self.path("logs")]
        job = self.start_nessie_run(self.command(folder, steps), options)
        with killer_of(job, seed) as killer:
            code, out, err = job.finish(deadline_s=60)
        said = f"{folder}: {killer.killed} killed\n{out}{err}"
        self.assertEqual(code, 0, said)
        for name in sorted(os.listdir(self.path("native"))):
            self.assertTrue(read_file(self.path(f"native/{name}")) == read_file(self.path(f"{folder}/{name}")),
                            f"{name} differs; {said}")
        self.assertEqual(os.listdir(self.path("logs")), [], said)
        return killer.killed

    def check(self, steps, seeds):
        self.run_natively(steps)
        killed = 0
        for seed in seeds:
            for durability, servers in SETUPS:
                with self.subTest(durability=durability, servers=servers, seed=seed):
                    killed += self.run_with_a_killer(durability, servers, steps, seed)
        self.assertGreater(killed, 0)
        self.assert_nothing_left()

    @unittest.skipIf(SWEEP, "runs in ./dev test")
    def test_of_a_program_whose_servers_are_killed(self):
        self.check(steps=6, seeds=[1])

    @unittest.skipUnless(SWEEP, "runs in ./dev test-all")
    def test_of_a_program_whose_servers_are_killed_many_times(self):
        self.check(steps=20, seeds=range(2, 12))

    @unittest.skipUnless(SWEEP, "runs in ./dev test-all")
    def test_of_a_program_of_whose_servers_two_are_killed(self):
        """Soon after each other; the third one has copies of what the first one had."""
        self.run_natively(steps=20)
        for seed in range(10):
            with self.subTest(seed=seed):
                self.run_with_a_killer("replicated", 3, 20, seed, KillerOfNeighbours)


if __name__ == "__main__":
    unittest.main()
