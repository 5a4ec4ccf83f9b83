# SPDX-License-Identifier: BSD-3-Clause
"""Servers on each node of a job, or in the program's processes, in front of mpiexec and of srun: of a user who is not root."""
import unittest

from slurm_case import LAUNCHERS, NOBODY, WRITER, SlurmCase, line, nessie_run, sweep


class Places(SlurmCase):
    user = NOBODY

    def compare(self, *options):
        body = ""
        for name, launch in LAUNCHERS.items():
            body += line(f"{name}.native", *launch, *WRITER)
            body += line(f"{name}.staged", *nessie_run("-m", "caching", "-M", "64M", *options), *launch, *WRITER)
        self.submit(body, "--ntasks-per-node=2", nodes=2, tasks=4).finish()
        for name in LAUNCHERS:
            with self.subTest(launcher=name):
                self.assertEqual(self.code(f"{name}.native"), 0, self.text(f"{name}.native"))
                self.assert_same(f"{name}.native", f"{name}.staged")
                self.assertNotIn("not staged", self.text(f"{name}.staged"))
        self.assert_nothing_left()

    def test_beside_the_program_on_each_node(self):
        self.compare("--place", "each-node")

    def test_in_the_programs_processes(self):
        self.compare("--embedded", "-s", "2")

    @sweep
    def test_as_ranks_of_the_programs_job_on_each_node(self):
        self.compare("--mpmd", "--place", "each-node")


if __name__ == "__main__":
    unittest.main()
