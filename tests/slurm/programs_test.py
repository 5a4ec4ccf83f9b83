# SPDX-License-Identifier: BSD-3-Clause
"""nessie run --mpmd below srun: the servers are ranks of the program's step, of one program or of several, which keep
their ranks, and the nodes that srun gives them."""
import json
import shlex
import unittest

from harness import read_file
from slurm_case import LAUNCHERS, NOBODY, WRITER, SlurmCase, line, nessie_run, sweep

SRUN = LAUNCHERS["srun"]
# Says first where it is.
TELLING_WRITER = ["sh", "-c", f'echo "$SLURM_PROCID: $SLURMD_NODENAME"; exec {shlex.join(WRITER)}']


def mpmd(*options):
    return nessie_run("--mpmd", "-m", "caching", "-M", "64M", "--json", "../run.json", *options)


class Programs(SlurmCase):
    nodes = 3
    user = NOBODY

    def compare(self, launch, *options, job_options=(), nodes=2, tasks=4):
        # The ranks do not wait for one in which Open MPI has crashed: run() has another try.
        self.submit(line("native", *launch) + line("mpmd", *mpmd(*options), *launch), *job_options, nodes=nodes,
                    tasks=tasks, env={"SLURM_KILL_BAD_EXIT": "1"}).finish()
        self.assertEqual(self.code("native"), 0, self.text("native"))
        self.assert_same("native", "mpmd")
        self.assert_nothing_left()

    def hosts_of_servers(self):
        return [server["host"] for server in json.loads(read_file(self.path("run.json")))["placement"]["servers"]]

    def test_keep_their_nodes_beside_servers_on_each(self):
        self.compare([*SRUN, "-n", "4", "-m", "cyclic", *TELLING_WRITER], "--place", "each-node")
        self.assertIn("1: node2", self.lines("mpmd"))
        self.assertEqual(self.hosts_of_servers(), ["node1", "node2"])

    def test_keep_their_nodes_beside_servers_on_the_first(self):
        self.compare([*SRUN, *TELLING_WRITER], "-s", "2", job_options=["--ntasks-per-node=2"])
        self.assertNotIn("ntasks-per-node", self.text("mpmd"))
        self.assertEqual(self.hosts_of_servers(), ["node1", "node1"])

    def test_are_kept_from_a_node_of_the_servers(self):
        """MPI_Finalize of a server's rank, which is alone on its node, has to wait for the program's."""
        self.compare([*SRUN, "-n", "2", "-N", "1", *WRITER, ":", "-n", "1", "-N", "1", *WRITER], "--place", "node", nodes=3, tasks=6,
                     job_options=["--ntasks-per-node=2"])
        self.assertEqual(self.hosts_of_servers(), ["node3"])

    def test_of_several_components_share_a_world(self):
        self.compare([*SRUN, "-n", "2", *WRITER, ":", "-n", "1", *WRITER], "--place", "each-node", tasks=3)

    def test_of_a_file_share_a_world(self):
        with open(self.path("programs.conf"), "w", encoding="utf-8") as file:
            file.write(f"# by rank\n0-1 {shlex.join(WRITER)}\n* sh -c '{shlex.join(WRITER)}'\n")
        self.compare([*SRUN, "-n", "3", "--multi-prog", "../programs.conf"])

    def test_with_options_of_their_own_are_refused(self):
        launch = [*SRUN, "-n", "1", *WRITER, ":", "-n", "1", "--cpus-per-task=2", *WRITER]
        self.submit(line("mpmd", *mpmd(), *launch), nodes=2, tasks=4).finish()
        self.assertIn("--cpus-per-task=2", self.text("mpmd"))
        self.assertNotEqual(self.code("mpmd"), 0)
        self.assert_nothing_left()

    def test_that_srun_does_not_start_are_told_in_its_words(self):
        self.submit(line("mpmd", *mpmd(), *SRUN, "--nodelist=node9", *WRITER), nodes=1, tasks=1).finish()
        self.assertIn("srun: error: Unable to create step", self.text("mpmd"))
        self.assertNotEqual(self.code("mpmd"), 0)
        self.assert_nothing_left()

    @sweep
    def test_of_a_heterogeneous_job_leave_a_component_to_the_servers(self):
        self.compare([*SRUN, "-n", "2", *WRITER, ":", "-n", "1", *WRITER], "-s", "2", nodes=1, tasks=2,
                     job_options=[":", "--nodes=1", "--ntasks=1", ":", "--nodes=1", "--ntasks=1"])
        self.assertEqual(self.hosts_of_servers(), ["node3", "node3"])

    @sweep
    def test_of_all_components_of_a_heterogeneous_job_are_refused(self):
        launch = [*SRUN, "-n", "1", *WRITER, ":", "-n", "1", *WRITER]
        self.submit(line("mpmd", *mpmd(), *launch), ":", "--nodes=1", "--ntasks=1").finish()
        self.assertIn("ask for another one", self.text("mpmd"))
        self.assertNotEqual(self.code("mpmd"), 0)


if __name__ == "__main__":
    unittest.main()
