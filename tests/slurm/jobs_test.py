# SPDX-License-Identifier: BSD-3-Clause
"""nessie run in batch jobs, in front of mpiexec and of srun, on one node and on several."""
import filecmp
import re
import shlex
import unittest

from harness import NESSIE, read_file
from slurm_case import LAUNCHERS, WRITER, SlurmCase, line, nessie_run, sweep

MODES = {"caching": ["-m", "caching", "-M", "128M"], "direct": ["-m", "direct", "-M", "128M"],
         "two": ["-s", "2", "-m", "caching", "-M", "64M"]}


class Files(SlurmCase):
    def compare(self, nodes, launchers, modes, tasks=2):
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

    def test_on_one_node_are_the_same(self):
        self.compare(1, LAUNCHERS, ["caching"])

    def test_on_two_nodes_are_the_same(self):
        self.compare(2, LAUNCHERS, ["caching"])

    def test_take_a_quarter_of_the_jobs_memory_on_the_node(self):
        for options, memory in (["--mem=400"], "100M"), (["--mem-per-cpu=200"], "100M"):
            job = self.submit(line("staged", *nessie_run("-s", "1"), *LAUNCHERS["srun"], *WRITER), *options, nodes=1, tasks=2)
            job.finish()
            self.assertIn(f"1 staging server (auto, {memory})", self.text("staged"))
            self.run_command(["sh", "-c", "rm -r staged*"])
        self.assert_nothing_left()

    def test_of_servers_on_a_node_of_their_own_are_the_same(self):
        """The cluster's jobs are root's, whose files no server opens on another node: they go native, and say why."""
        body = line("native", "srun", "--mpi=pmix", "--ntasks=1", *WRITER)
        for name, launch in LAUNCHERS.items():
            body += line(name, *nessie_run("--place", "node", "-M", "64M"), *launch, *(["-n", "1"]), *WRITER)
        self.submit(body, nodes=2, tasks=2).finish()
        for name in LAUNCHERS:
            self.assertEqual(self.code(name), 0, self.text(name))
            self.assertIn("never as root", self.text(name))
            self.assertTrue(filecmp.cmp(self.path("native/out.nc"), self.path(f"{name}/out.nc"), shallow=False))
        self.assert_nothing_left()

    def test_of_servers_in_the_programs_job_are_the_same(self):
        body = ""
        for name, launch in LAUNCHERS.items():
            body += line(f"{name}.native", *launch, *WRITER)
            body += line(f"{name}.mpmd", *nessie_run("--mpmd", "-s", "2", "-M", "64M"), *launch, "-n", "2", *WRITER)
        self.submit(body, nodes=1, tasks=2).finish()
        for name in LAUNCHERS:
            self.assert_same(f"{name}.native", f"{name}.mpmd")
        self.assert_nothing_left()

    @sweep
    def test_are_the_same_in_each_mode(self):
        for nodes in (1, 2):
            with self.subTest(nodes=nodes):
                self.compare(nodes, LAUNCHERS, MODES, tasks=4)
                self.run_command(["sh", "-c", "rm -r mpiexec.* srun.*"])

    @sweep
    def test_of_the_rank_on_the_other_node_are_the_same(self):
        """The program's first process, which opens the files, is not where the servers are."""
        launch = ["srun", "--mpi=pmix", "--nodes=1", "--ntasks=2", "--relative=1"]
        job = self.submit(line("native", *launch, *WRITER) +
                          line("staged", *nessie_run(*MODES["caching"]), *launch, *WRITER), "--ntasks-per-node=2", nodes=2, tasks=4)
        job.finish()
        self.assertEqual(self.code("staged"), 0, self.text("staged"))
        self.assertTrue(filecmp.cmp(self.path("native/out.nc"), self.path("staged/out.nc"), shallow=False))
        self.assert_nothing_left()


    @sweep
    def test_of_a_heterogeneous_job_are_the_same(self):
        """Its components are on nodes of their own, and one MPI job."""
        launch = ["srun", "--mpi=pmix", "--het-group=0,1"]
        body = line("native", *launch, *WRITER) + line("staged", *nessie_run(*MODES["caching"]), *launch, *WRITER)
        self.submit(body, ":", "--nodes=1", "--ntasks=2", nodes=1, tasks=2).finish()
        self.assertEqual(self.code("native"), 0, self.text("native"))
        self.assert_same("native", "staged")
        self.assert_nothing_left()


class Scripts(SlurmCase):
    """nessie slurm."""

    def test_that_were_rewritten_run_staged(self):
        with open(self.path("flow.sh"), "w", encoding="utf-8") as file:
            file.write("#!/bin/bash\n#SBATCH --nodes=2 --ntasks=2 --output=flow.out\nsrun hostname >/dev/null\n"
                       f"srun --mpi=pmix {shlex.join(WRITER)}\n")
        env = {**self.cluster.environment, **self.env}
        done = self.cluster.run_on("control", [NESSIE, "slurm", "--submit", "flow.sh", "--", "--memory", "128M"], env=env,
                                   cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("hostname writes nothing", done.stderr)
        self.cluster.wait_for_job(int(re.search(r"Submitted batch job (\d+)", done.stdout)[1]))
        said = read_file(self.path("flow.out")).decode()
        self.assertIn("4 steps, 0 wrong", said)
        self.assertIn("nessie: staged", said)
        self.assert_nothing_left()


class ExitCodes(SlurmCase):
    def compare(self, ends):
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
        self.assert_nothing_left()

    def test_are_the_launchers(self):
        self.compare({"three": "exit 3"})
        self.assertEqual(self.code("srun.three.native"), 3)

    @sweep
    def test_of_every_end_are_the_launchers(self):
        self.compare({"fault": "kill -SEGV $$", "none": "exit 0", "most": "exit 255"})

    def test_become_the_jobs(self):
        job = self.submit(f"exec {NESSIE} run -- srun -n 2 sh -c 'exit 7'\n").finish()
        self.assertEqual((job["JobState"], job["ExitCode"]), ("FAILED", "7:0"))


if __name__ == "__main__":
    unittest.main()
