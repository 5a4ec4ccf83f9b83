# SPDX-License-Identifier: BSD-3-Clause
"""kill -9 of a staging server, of a rank, of the whole application, of `nessie run`, at random moments.

The promise under test: nothing hangs, nothing is left behind, and every checkpoint that the program was told is written
is in its file, the same as natively, or is named on stderr.

NESSIE_TEST_SEED chooses other moments.
"""
import os
import random
import re
import signal
import time
import unittest

from harness import ProcessTestCase, checkpoint, read_file

STEPS = 6
TRIALS = 4
SEED = int(os.environ.get("NESSIE_TEST_SEED", "20"))


class KillAtARandomMoment(ProcessTestCase):
    env_of_ranks = {"NESSIE_STAGING_TIMEOUT": "10s"}

    def setUp(self):
        super().setUp()
        self.random = random.Random(f"{SEED} {self.id()}")
        os.mkdir(self.path("native"))
        start = time.monotonic()
        code, out, err = self.run_command(self.writer("native"))
        self.assertEqual(code, 0, out + err)
        self.native_s = time.monotonic() - start

    def writer(self, folder, processes=3):
        return checkpoint(processes, self.path(folder + "/s3d"), steps=STEPS, grid="40,36,32", compute_ms=30)

    def trial(self, number, victim_of, servers=2):
        """Kills victim_of(job) at a random moment. Returns (exit code, stdout, stderr, folder)."""
        folder = f"trial{number}"
        os.mkdir(self.path(folder))
        job = self.start_nessie_run(self.writer(folder), ["--servers", str(servers)], env=self.env_of_ranks)
        job.wait_for("checkpoint", 3)
        time.sleep(self.random.uniform(0, self.native_s))
        victim = victim_of(job)
        if victim:
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                victim = None
        code, out, err = job.finish()
        return victim, code, out, err, folder

    def checkpoints_told_written(self, out):
        return [int(step) for step in re.findall(r"^step +(\d+)", out, re.MULTILINE)]

    def assert_in_the_files_or_named(self, folder, out, err):
        for step in self.checkpoints_told_written(out):
            name = f"s3d.{step:04d}.nc"
            path = self.path(f"{folder}/{name}")
            same = os.path.exists(path) and read_file(path) == read_file(self.path("native/" + name))
            self.assertTrue(same or path in err, f"{path} is neither complete nor named:\n{err}")

    def assert_in_the_files(self, folder, out, err):
        for step in self.checkpoints_told_written(out):
            name = f"s3d.{step:04d}.nc"
            self.assertEqual(read_file(self.path(f"{folder}/{name}")), read_file(self.path("native/" + name)), err)

    def pick(self, processes):
        return self.random.choice(sorted(processes, key=lambda process: process.pid)).pid if processes else None

    def test_of_a_server_is_told_with_what_was_lost(self):
        for number in range(TRIALS):
            with self.subTest(trial=number, seed=SEED):
                victim, code, out, err, folder = self.trial(number, lambda job: self.pick(job.descendants("nessied")))
                if victim and "killed by signal 9" in err and code == 0:
                    self.assertRegex(err, "nothing was staged|all that it had is in the files")
                    self.assert_in_the_files(folder, out, err)
                self.assert_in_the_files_or_named(folder, out, err)
        self.assert_nothing_left()

    def test_of_a_rank_loses_nothing_that_was_acknowledged(self):
        for number in range(TRIALS):
            with self.subTest(trial=number, seed=SEED):
                victim, code, out, err, folder = self.trial(number, lambda job: self.pick(job.descendants("checkpoint")))
                if len(self.checkpoints_told_written(out)) < STEPS:
                    self.assertNotEqual(code, 0, err)
                self.assert_in_the_files(folder, out, err)
        self.assert_nothing_left()

    def test_of_the_whole_application_loses_nothing_that_was_acknowledged(self):
        for number in range(TRIALS):
            with self.subTest(trial=number, seed=SEED):
                victim, code, out, err, folder = self.trial(number, lambda job: self.pick(job.descendants("mpiexec")))
                if victim and len(self.checkpoints_told_written(out)) < STEPS:
                    self.assertEqual(code, 137, err)
                self.assert_in_the_files(folder, out, err)
        self.assert_nothing_left()

    def test_of_nessie_run_loses_nothing_that_was_acknowledged(self):
        for number in range(TRIALS):
            with self.subTest(trial=number, seed=SEED):
                _, _, out, err, folder = self.trial(number, lambda job: job.process.pid)
                self.assert_nothing_left()
                self.assert_in_the_files(folder, out, err)


if __name__ == "__main__":
    unittest.main()
