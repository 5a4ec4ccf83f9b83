# SPDX-License-Identifier: BSD-3-Clause
"""nessie run --mpmd: the staging servers are ranks of the program's own MPI job."""
import os
import shutil
import signal
import sys
import unittest

from harness import CHECKPOINT, NESSIE, ProcessTestCase, checkpoint, mpiexec, read_file, wait_until

LONG = {"steps": 400, "compute_ms": 50}
# It writes nothing before it is ended: who is killed while it writes natively leaves a semaphore of MPI-IO's.
COMPUTING = {"steps": 1, "compute_ms": 60000}


class Mpmd(ProcessTestCase):
    def run_mpmd(self, command, *options, **job_options):
        return self.nessie_run(command, ["--mpmd", *options], **job_options)

    def start(self, *options, processes=2):
        """A program that goes on writing, and its job."""
        job = self.start_nessie_run(checkpoint(processes, self.path("out"), **LONG), ["--mpmd", *options])
        wait_until(lambda: os.path.exists(self.path("out.0002.nc")), "the second checkpoint")
        return job

    def assert_same_as_native(self, command, prefix="out", steps=2):
        os.mkdir(self.path("native"))
        code, _, err = self.run_command(command, cwd=self.path("native"))
        self.assertEqual(code, 0, err)
        for step in range(1, steps + 1):
            name = f"{prefix}.{step:04}.nc"
            self.assertEqual(read_file(self.path(name)), read_file(self.path(f"native/{name}")), name)

    def test_files_are_as_without(self):
        for options in (["-m", "caching"], ["-m", "direct", "-s", "3"]):
            with self.subTest(options=options):
                shutil.rmtree(self.path("native"), ignore_errors=True)
                command = checkpoint(3, "out")
                code, out, err = self.run_mpmd(command, *options)
                self.assertEqual(code, 0, err)
                self.assertIn("3 processes", out)   # the world has none of the servers
                self.assertIn("staged ", err)
                self.assertNotIn("native", err)
                self.assertNotIn("warning", err)
                self.assert_same_as_native(command)
        self.assert_nothing_left()

    def test_programs_that_share_a_job_go_on_sharing_it(self):
        part = [CHECKPOINT, "--grid", "24,20,16", "--steps", "2", "--prefix", "out"]
        command = mpiexec(1, *part, ":", "-n", "2", *part)
        code, out, err = self.run_mpmd(command)
        self.assertEqual(code, 0, err)
        self.assertIn("3 processes", out)
        self.assertIn("staged ", err)
        self.assert_same_as_native(command)
        self.assert_nothing_left()

    def test_a_program_that_fails(self):
        code, _, err = self.run_mpmd(mpiexec(2, "sh", "-c", f"{CHECKPOINT} --steps 1 --prefix out; exit 7"))
        self.assertEqual(code, 7, err)
        self.assertIn("staged ", err)
        self.assert_nothing_left()

    def test_a_program_without_mpi_is_told(self):
        for command in (["true"], ["sh", "-c", "sleep 0.2"]):
            code, _, err = self.run_mpmd(mpiexec(2, *command))
            self.assertEqual(code, 1, err)
            self.assertIn("run it without --mpmd", err)
        self.assert_nothing_left()

    def test_a_launcher_that_fails_is_not_waited_for(self):
        code, _, err = self.run_mpmd(mpiexec(2, self.path("missing")))
        self.assertNotIn(code, (0, 1, 74), err)
        self.assertIn("has ended before the staging servers could start", err)
        self.assertIn("drained for 0.", err)
        self.assertNotIn("nessie: error", err)
        self.assert_nothing_left()

    def test_what_is_no_launcher_is_told(self):
        for command in ([CHECKPOINT], ["srun", CHECKPOINT]):
            code, _, err = self.run_mpmd(command)
            self.assertNotEqual(code, 0)
            self.assertIn("--mpmd", err)
        self.assert_nothing_left()

    def test_a_launcher_that_replaces_what_is_preloaded_is_told(self):
        command = mpiexec(2, CHECKPOINT)
        command[1:1] = ["-x", "LD_PRELOAD=tool.so"]
        code, _, err = self.run_mpmd(command)
        self.assertEqual(code, 1, err)
        self.assertIn("'-x LD_PRELOAD=tool.so' would leave the program without CommSplitter", err)
        self.assert_nothing_left()

    def test_a_server_that_does_not_come_ends_the_run(self):
        job = self.start_nessie_run(checkpoint(2, self.path("out"), **COMPUTING), ["--mpmd"],
                                    env={"NESSIE_STAGING_LISTEN": "nothing"})
        code, _, err = job.finish()
        self.assertEqual(code, 1, err)
        self.assertIn("nothing", err)
        self.assert_nothing_left()

    def test_too_slow_a_start_ends_the_run(self):
        code, _, err = self.run_mpmd(checkpoint(2, self.path("out"), **COMPUTING),
                                     env={"NESSIE_RUN_START_TIMEOUT": "1ms"})
        self.assertEqual(code, 1, err)
        self.assertIn("NESSIE_RUN_START_TIMEOUT", err)
        self.assert_nothing_left()

    def test_a_rank_that_is_killed(self):
        job = self.start()
        os.kill(job.wait_for("checkpoint", 2)[0].pid, signal.SIGKILL)
        code, _, err = job.finish()
        self.assertNotIn(code, (0, 74), err)
        self.assertIn("staged ", err)
        self.assert_nothing_left()

    def test_a_server_that_is_killed(self):
        job = self.start("-s", "2")
        os.kill(job.wait_for("nessied", 2)[0].pid, signal.SIGKILL)
        code, _, err = job.finish()
        self.assertNotEqual(code, 0, err)
        self.assertRegex(err, r"error: staging server \d was killed by signal 9")
        self.assert_nothing_left()

    def test_an_agent_that_is_killed(self):
        job = self.start()
        agent = [process for process in job.descendants("nessie") if process.words[1] == "agent"]
        os.kill(agent[0].pid, signal.SIGKILL)
        _, _, err = job.finish()   # of what comes later nothing is in a server: it is written natively
        self.assertIn("is lost, with its agent", err)
        self.assert_nothing_left_but_the_agents_folder()

    def assert_nothing_left_but_the_agents_folder(self):
        self.run_command([NESSIE, "clean"])
        self.assert_nothing_left()

    def test_a_server_s_rank_that_is_killed(self):
        job = self.start()
        os.kill(job.wait_for("nessie-rank")[0].pid, signal.SIGKILL)
        code, _, err = job.finish()
        self.assertNotEqual(code, 0, err)   # the launcher ends the job
        self.assertIn("staged ", err)
        self.assert_nothing_left()

    def test_a_run_that_is_killed(self):
        job = self.start()
        job.process.kill()
        job.finish()
        self.assert_nothing_left()

    def test_interrupted(self):
        job = self.start()
        os.kill(job.process.pid, signal.SIGINT)
        code, _, err = job.finish()
        self.assertNotEqual(code, 0, err)
        self.assertIn("staged ", err)
        self.assert_nothing_left()


if __name__ == "__main__":
    sys.exit(unittest.main())
