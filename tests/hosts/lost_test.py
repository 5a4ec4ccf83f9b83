# SPDX-License-Identifier: BSD-3-Clause
"""A host goes away in mid-run: nothing hangs, and what the program was told is written is in its file, or is named."""
import os
import re
import signal
import time

import setups
from harness import CHECKPOINT, read_file, wait_until
from hosts_case import NOTICE, HostsCase, main

PROGRAM = [CHECKPOINT, "--grid", "24,20,16", "--prefix", "s3d", "--compute-ms", "50", "--steps"]
STEPS = 3


class Lost(HostsCase):
    def start(self, mode, steps=1000, notice=NOTICE):
        """A run that has written its first checkpoints, which are natively in "native", and goes on."""
        self.make_hosts(env=notice)
        native = self.native([*self.hosts["a"].enter(), *self.hosts.mpiexec("a:2,b:2", *PROGRAM, str(STEPS))])
        self.assertEqual(native.code, 0, native.err)
        folder = self.make(mode)
        command = self.hosts.mpiexec("a:2,b:2", *PROGRAM, str(steps))
        job = self.job([*self.hosts["a"].enter(), *setups.nessie_run(mode), *command], cwd=folder)
        wait_until(lambda: os.path.exists(os.path.join(folder, f"s3d.{STEPS - 1:04d}.nc")) or job.process.poll() is not None,
                   "checkpoints")
        self.assertIsNone(job.process.poll(), "ended before a host was lost")
        return job

    def assert_kept(self, mode, out, err):
        told = [int(step) for step in re.findall(r"^step +(\d+)", out, re.MULTILINE)]
        self.assertTrue(told, out + err)
        for step in told:
            name = f"s3d.{step:04d}.nc"
            path = os.path.join(self.path(mode), name)
            if step < STEPS:
                same = os.path.exists(path) and read_file(path) == read_file(os.path.join(self.path("native"), name))
                self.assertTrue(same or path in err, f"{path} is neither complete nor named:\n{err}")

    def lose_one(self, mode, lose):
        job = self.start(mode)
        lose(self.hosts["b"])
        code, out, err = job.finish()
        self.assertNotEqual(code, 0, err)
        self.assertNotEqual(code, 74, err)   # the program failed by itself
        self.assert_kept(mode, out, err)
        self.assert_nothing_left([self.hosts["a"]])

    @setups.sweep
    def test_one_that_ends_ends_the_run(self):
        self.lose_one("caching", lambda host: host.end())

    def test_one_that_falls_silent_ends_the_run(self):
        self.lose_one("direct", lambda host: host.lose())

    @setups.sweep
    def test_one_that_is_cut_off_ends_the_run(self):
        """Its processes go on for a while."""
        for mode in ("caching", "two"):
            with self.subTest(mode=mode):
                self.lose_one(mode, lambda host: host.cut_off())
                self.hosts.__exit__()
                self.run_command(["rm", "-rf", self.path("native")], cwd="/")

    def test_one_that_is_cut_off_for_two_seconds_loses_nothing(self):
        job = self.start("caching", 20, notice={})
        self.hosts["b"].cut_off()
        time.sleep(2)   # the fault itself
        self.hosts["b"].join_again()
        code, out, err = job.finish()
        self.assertEqual(code, 0, err)
        self.assertNotIn("not staged", err)
        self.assert_kept("caching", out, err)
        self.assert_nothing_left()

    @setups.sweep
    def test_a_server_that_is_killed_is_told_with_what_was_lost(self):
        for mode in ("caching", "two"):
            with self.subTest(mode=mode):
                job = self.start(mode)
                os.kill(job.descendants("nessied")[0].pid, signal.SIGKILL)
                code, out, err = job.finish()
                self.assertNotEqual(code, 0, err)
                self.assertIn("killed by signal 9", err)
                self.assert_kept(mode, out, err)
                self.assert_nothing_left()
                self.hosts.__exit__()
                self.run_command(["rm", "-rf", self.path("native")], cwd="/")

    @setups.sweep
    def test_nessie_run_that_is_killed_leaves_nothing_on_either_host(self):
        for mode in ("caching", "direct"):
            with self.subTest(mode=mode):
                job = self.start(mode)
                os.kill(min(process.pid for process in job.descendants("nessie")), signal.SIGKILL)   # not the janitor
                job.finish()
                self.assert_nothing_left()
                self.hosts.__exit__()
                self.run_command(["rm", "-rf", self.path("native")], cwd="/")


if __name__ == "__main__":
    main()
