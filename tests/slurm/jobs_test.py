# SPDX-License-Identifier: BSD-3-Clause
"""nessie run in batch jobs, in front of mpiexec and of srun, on one node and on several."""
import filecmp
import shlex
import unittest

from harness import NESSIE
from setups import program
from slurm_case import LAUNCHERS, SlurmCase, nessie_run, sweep

MODES = {"caching": ["-m", "caching", "-M", "128M"], "direct": ["-m", "direct", "-M", "128M"],
         "two": ["-s", "2", "-m", "caching", "-M", "64M"]}
WRITER = [program("writer"), "out.nc"]


def line(label, *command):
    return shlex.join(["run", label, *command]) + "\n"


class Files(SlurmCase):
    def compare(self, nodes, launchers, modes, tasks=4):
        body = ""
        for name in launchers:
            body += line(f"{name}.native", *LAUNCHERS[name], *WRITER)
            for mode in modes:
                body += line(f"{name}.{mode}", *nessie_run(*MODES[mode]), *LAUNCHERS[name], *WRITER)
        job = self.submit(body, nodes=nodes, tasks=tasks)
        job.finish()
        for name in launchers:
            self.assertEqual(self.code(f"{name}.native"), 0, self.text(f"{name}.native"))
            for mode in modes:
                with self.subTest(launcher=name, mode=mode):
                    self.assert_same(f"{name}.native", f"{name}.{mode}")
        self.assert_nothing_left()

    def assert_same(self, native, staged):
        said = self.text(staged)
        self.assertEqual((self.code(staged), self.text(staged, "out")), (self.code(native), self.text(native, "out")), said)
        self.assertIn("nessie: staged", said)
        self.assertTrue(filecmp.cmp(self.path(f"{native}/out.nc"), self.path(f"{staged}/out.nc"), shallow=False), said)

    def test_on_one_node_are_the_same(self):
        self.compare(1, LAUNCHERS, ["caching"])

    def test_on_two_nodes_are_the_same(self):
        self.compare(2, LAUNCHERS, ["caching"])

    @sweep
    def test_are_the_same_in_each_mode(self):
        for nodes in (1, 2):
            with self.subTest(nodes=nodes):
                self.compare(nodes, LAUNCHERS, MODES)
                self.run_command(["sh", "-c", "rm -r mpiexec.* srun.*"])

    @sweep
    def test_of_the_rank_on_the_other_node_are_the_same(self):
        """The program's first process, which opens the files, is not where the servers are."""
        launch = ["srun", "--mpi=pmix", "--nodes=1", "--ntasks=2", "--relative=1"]
        job = self.submit(line("native", *launch, *WRITER) +
                          line("staged", *nessie_run(*MODES["caching"]), *launch, *WRITER), nodes=2)
        job.finish()
        self.assertEqual(self.code("staged"), 0, self.text("staged"))
        self.assertTrue(filecmp.cmp(self.path("native/out.nc"), self.path("staged/out.nc"), shallow=False))
        self.assert_nothing_left()


class ExitCodes(SlurmCase):
    def test_are_the_launchers(self):
        ends = {"three": "exit 3", "fault": "kill -SEGV $$", "none": "exit 0"}
        commands = {(name, end): [*launch, "-n", "2", "sh", "-c", script]
                    for name, launch in LAUNCHERS.items() for end, script in ends.items()}
        body = ""
        for (name, end), command in commands.items():
            body += line(f"{name}.{end}.native", *command) + line(f"{name}.{end}.staged", *nessie_run(), *command)
        self.submit(body).finish()
        for name, end in commands:
            with self.subTest(launcher=name, end=end):
                self.assertEqual(self.code(f"{name}.{end}.staged"), self.code(f"{name}.{end}.native"),
                                 self.text(f"{name}.{end}.staged"))
        self.assertEqual(self.code("srun.three.native"), 3)
        self.assert_nothing_left()

    def test_become_the_jobs(self):
        job = self.submit(f"exec {NESSIE} run -- srun -n 2 sh -c 'exit 7'\n").finish()
        self.assertEqual((job["JobState"], job["ExitCode"]), ("FAILED", "7:0"))


if __name__ == "__main__":
    unittest.main()
