# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that do not end by themselves: scancel, a time limit, a daemon that is killed, a node that dies."""
import filecmp
import os
import shlex
import sys
import unittest

from harness import BUILD, NESSIE, compile_job, marked_processes, wait_until
from slurm_case import LAUNCHERS, SlurmCase, checkpoint, line, nessie_run, sweep


LAST_CHECKPOINT = os.path.join(BUILD, "tests", "slurm", "last_checkpoint")


# Holds all threads of a process until it is ended itself. What is only stopped scancel wakes.
FREEZE = """
import ctypes, os, signal, sys
seize, interrupt = 0x4206, 0x4207
for request in (seize, interrupt):
    for thread in os.listdir(f"/proc/{sys.argv[1]}/task"):
        ctypes.CDLL(None).ptrace(request, int(thread), None, None)
print("frozen", flush=True)
signal.pause()
"""


class EndCase(SlurmCase):
    def start(self, launcher="srun", *options):
        """A staged program that goes on and on, and has written its first file; and that file, natively."""
        launch = LAUNCHERS[launcher]
        body = shlex.join(["run", "native", *launch, *checkpoint("s3d", 1)]) + "\n"
        body += shlex.join(["run", "staged", *nessie_run("-M", "128M", "--json", "../summary.json"), *launch,
                            *checkpoint("s3d", 10000, 50)]) + "\n"
        job = self.submit(body, "--no-requeue", *options, nodes=2)
        wait_until(lambda: os.path.exists(self.path("staged/s3d.0002.nc")), "the second checkpoint to be begun", 30)
        return job

    def start_with_last_checkpoint(self, label, words, *options):
        """A program that writes last.nc when it is told to end, and then waits for nobody."""
        command = ["run", label, *words, *LAUNCHERS["srun"], LAST_CHECKPOINT]
        job = self.submit(shlex.join(command) + "\n", *options, nodes=2)
        wait_until(lambda: os.path.exists(self.path(f"{label}/ready")), "the program to compute", 30)
        return job

    def compare_last_checkpoints(self, end):
        """Natively and staged, with `end(job)` to tell the program."""
        for label, words in {"native": [], "staged": nessie_run("-M", "128M")}.items():
            job = self.start_with_last_checkpoint(label, words)
            end(job)
            job.finish()
            self.assert_nothing_left()
        for name in ("first.nc", "last.nc"):
            self.assertTrue(filecmp.cmp(self.path(f"native/{name}"), self.path(f"staged/{name}"), shallow=False), name)

    def assert_first_file_is_whole(self):
        self.assertTrue(filecmp.cmp(self.path("native/s3d.0001.nc"), self.path("staged/s3d.0001.nc"), shallow=False),
                        self.text("staged"))


class Ends(EndCase):
    def check_scancel(self, launcher):
        job = self.start(launcher)
        job.cancel()
        self.assertEqual(job.finish()["JobState"], "CANCELLED")
        self.assert_first_file_is_whole()
        self.assert_nothing_left()

    def test_scancel_leaves_whole_files_and_nothing_else(self):
        self.check_scancel("mpiexec")

    @sweep
    def test_scancel_of_srun_leaves_whole_files_and_nothing_else(self):
        self.check_scancel("srun")

    def test_scancel_has_named_what_a_slow_server_has_still_to_write(self):
        """Since SIGKILL follows, after which nothing more is said."""
        job = self.submit(line("staged", *nessie_run("-m", "caching", "-M", "64M"), *LAUNCHERS["srun"],
                               compile_job(self.folder), "linger", "out.nc"))
        wait_until(lambda: os.path.exists(self.path("staged.out")) and "written" in self.text("staged", "out"), "the program")
        server = next(process.pid for process in marked_processes(self.mark) if process.name == "nessied")
        frost = self.job([sys.executable, "-c", FREEZE, str(server)])
        self.assertEqual(frost.process.stdout.readline(), "frozen\n")
        job.cancel()
        wait_until(lambda: "if this process is killed now, this is lost" in self.text("staged"), "it to be named", 20)
        wait_until(lambda: f'{self.path("staged/out.nc")}: 1 MiB' in self.text("staged"), "the file to be named", 5)
        frost.process.kill()
        job.finish()
        self.assertIn("nessie: staged 1 MiB", self.text("staged"))
        self.assert_nothing_left()

    def test_a_program_may_write_a_last_checkpoint_when_the_job_is_cancelled(self):
        self.compare_last_checkpoints(lambda job: job.cancel())

    @sweep
    def test_a_program_may_write_a_last_checkpoint_when_it_is_warned(self):
        """#SBATCH --signal=USR1@60 sends a signal to all of the job's steps."""
        self.compare_last_checkpoints(lambda job: job.cancel("--signal=USR1"))

    @sweep
    def test_a_time_limit_leaves_whole_files_and_nothing_else(self):
        job = self.start()
        self.cluster.command("scontrol", "update", f"JobId={job.number}", "TimeLimit=0")
        self.assertEqual(job.finish()["JobState"], "TIMEOUT")
        self.assert_first_file_is_whole()
        self.assert_nothing_left()

    @sweep
    def test_a_step_that_is_cancelled_leaves_the_job_its_files(self):
        job = self.start()
        self.cluster.command("scancel", f"{job.number}.1")
        job.finish()
        self.assertNotEqual(self.code("staged"), 0)
        self.assert_first_file_is_whole()
        self.assert_nothing_left()

    @sweep
    def test_scancel_with_kill_leaves_whole_files(self):
        """Nobody is asked to end: the batch script, nessie run, its servers and the program are gone at once."""
        job = self.start()
        job.cancel("--signal=KILL", "--full")
        job.finish()
        self.assert_first_file_is_whole()
        done = self.cluster.run_on("node1", [NESSIE, "clean"], env={**self.env})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_nothing_left()


class Deaths(EndCase):
    """Each has a cluster of its own, whose second node does not live on."""
    def setUp(self):
        super().setUp()
        self.addCleanup(self.setUpClass)
        self.addCleanup(self.cluster.stop)

    def running_on_the_first_node(self):
        return [process for process in marked_processes(self.mark) if process.name in ("nessie", "nessied")]

    @sweep
    def test_of_a_slurmd(self):
        """Slurm gives the job up, but has nobody to end its processes on that node."""
        job = self.start()
        self.cluster.kill_slurmd("node2")
        self.assertEqual(self.cluster.wait_for_job(job.number)["JobState"], "NODE_FAIL")
        wait_until(lambda: not self.running_on_the_first_node(), "the end of nessie run and its servers")
        self.assert_first_file_is_whole()

    @sweep
    def test_of_a_node(self):
        job = self.start()
        self.cluster.hosts["node2"].lose()
        job.finish()
        self.assert_first_file_is_whole()
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
