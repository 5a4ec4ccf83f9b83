# SPDX-License-Identifier: BSD-3-Clause
"""Runs that are killed as a whole, for tests of what they leave."""
import os

import setups
from harness import NESSIE, ProcessTestCase, marked_processes, mpiexec, read_file, wait_until


class KilledRunCase(ProcessTestCase):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("logs"))

    def held_run(self, durability="logged", servers=1):
        """A run whose program has written to a file, and has it open."""
        self.native()
        job = self.start_nessie_run(self.writer(), ["--durability", durability, "--log", self.path("logs"), "--servers",
                                                    str(servers)])
        wait_until(lambda: self.run_command(["sh", "-c", "test -p ready && cat ready"])[0] == 0, "the file to be held")
        return job

    def let_go(self, job):
        self.run_command(["sh", "-c", "echo > go"])
        return job.finish()

    def log_folder(self):
        folder, = os.listdir(self.path("logs"))
        return os.path.join(self.path("logs"), folder)

    def killed_run(self, durability="logged", servers=1, is_cleaned=True):
        """One that is killed as a whole. Returns the folder of its logs."""
        job = self.held_run(durability, servers)
        self.kill_all_of(job)
        if is_cleaned:
            self.run_command([NESSIE, "clean"])   # as if the node had been started anew
        return self.log_folder()

    def kill_all_of(self, job):
        """Returns when nobody is left who holds a lock."""
        self.kill_marked()
        job.finish()
        wait_until(lambda: not marked_processes(self.mark), "their end")

    @staticmethod
    def writer():
        return mpiexec(1, setups.program("visible"), "held", "0.1")

    def native(self):
        os.mkdir(self.path("native"))
        job = self.job(self.writer(), cwd=self.path("native"))
        self.run_command(["sh", "-c", "until [ -p go ]; do sleep 0.02; done; cat ready; echo > go"], cwd=self.path("native"))
        self.assertEqual(job.finish()[0], 0)

    def assert_equal_files(self, name="step0.nc"):
        self.assertEqual(read_file(self.path("native/step0.nc")), read_file(self.path(name)))
