# SPDX-License-Identifier: BSD-3-Clause
"""The cluster itself: what it takes to begin and to end, however its test ends."""
import os
import shutil
import subprocess
import sys
import unittest

from cluster import Cluster, why_not
from harness import ProcessTestCase, wait_until

BEGIN_AND_WAIT = """
import cluster, time
it = cluster.Cluster(2)
print(it.folder, *(host.pid for host in it.hosts), flush=True)
time.sleep(600)
"""


@unittest.skipIf(why_not(), why_not())
class OfTests(ProcessTestCase):
    def test_runs_a_job_on_each_of_its_nodes(self):
        with Cluster(3) as cluster:
            self.assertEqual(sorted(cluster.command("srun", "--nodes=3", "hostname").split()), ["node1", "node2", "node3"])
        self.assertFalse(os.path.exists(cluster.folder))

    def test_ends_with_a_test_that_is_killed(self):
        job = self.job([sys.executable, "-B", "-c", BEGIN_AND_WAIT], env={"PYTHONPATH": os.pathsep.join(sys.path)})
        line = job.process.stdout.readline()
        self.assertTrue(line, line or job.finish())
        folder, *machines = line.split()
        self.addCleanup(shutil.rmtree, folder)
        self.assertEqual(len(machines), 3)
        job.process.kill()

        def running():
            return [number for number in machines if subprocess.run(["readlink", f"/proc/{number}/exe"], check=False,
                                                                    stdout=subprocess.DEVNULL).returncode == 0]
        wait_until(lambda: not running(), "the end of all machines", 20)


if __name__ == "__main__":
    unittest.main()
