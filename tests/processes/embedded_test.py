# SPDX-License-Identifier: BSD-3-Clause
"""nessie run --embedded: the staging servers are threads of the program's own processes."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from harness import (BUILD, SANITIZER, ProcessTestCase, checkpoint, compile_job, mpiexec, read_file, unsanitized,
                     wait_until)

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "embedded")
PROGRAMS = tempfile.mkdtemp(prefix="ne-", dir="/tmp")
JOB, FORTRAN_JOB = compile_job(PROGRAMS), os.path.join(PROGRAMS, "embedded_job_f08")
LONG = {"steps": 400, "compute_ms": 50}


def setUpModule():
    subprocess.run(["mpif90.openmpi", *SANITIZER, "-o", FORTRAN_JOB, os.path.join(HERE, "job.f90")], check=True)


def tearDownModule():
    shutil.rmtree(PROGRAMS)


class Embedded(ProcessTestCase):
    def run_embedded(self, command, *options, **job_options):
        return self.nessie_run(command, ["--embedded", *([] if "-m" in options else ["-m", "caching"]), *options], **job_options)

    def native(self, processes, name="native.nc"):
        code, out, err = self.run_command(mpiexec(processes, JOB, "finalize", self.path(name)))
        self.assertEqual(code, 0, out + err)
        return read_file(self.path(name))

    def assert_staged(self, err, files=1):
        self.assertIn("staged ", err)
        self.assertEqual(err.count(".nc: "), files, err)
        for word in ("native", "warning", "error"):
            self.assertNotIn(word, err)

    def test_files_are_as_without(self):
        for options in ([], ["-m", "direct", "-s", "3"], ["-s", "8"]):
            with self.subTest(options=options):
                for folder in ("native", "embedded"):
                    shutil.rmtree(self.path(folder), ignore_errors=True)
                    os.mkdir(self.path(folder))
                command = checkpoint(3, "out", verify=True)
                code, _, err = self.run_command(command, cwd=self.path("native"))
                self.assertEqual(code, 0, err)
                code, out, err = self.run_embedded(command, *options, cwd=self.path("embedded"))
                self.assertEqual(code, 0, out + err)
                self.assert_staged(err, 2)
                for step in (1, 2):
                    self.assertEqual(read_file(self.path(f"native/out.{step:04}.nc")),
                                     read_file(self.path(f"embedded/out.{step:04}.nc")))
        self.assert_nothing_left()

    def test_nothing_runs_beside_the_program(self):
        job = self.start_nessie_run(checkpoint(2, self.path("out"), **LONG), ["--embedded"])
        wait_until(lambda: os.path.exists(self.path("out.0002.nc")), "the second checkpoint")
        self.assertEqual(job.descendants("nessied"), [])
        os.kill(job.process.pid, signal.SIGINT)
        job.finish()
        self.assert_nothing_left()

    def test_a_script_with_several_jobs(self):
        jobs = " ".join(mpiexec(2, JOB, "finalize", "first.nc") + ["&&"] + mpiexec(2, JOB, "finalize", "second.nc"))
        beside = " ".join(mpiexec(1, JOB, "finalize", "third.nc") + ["&"] + mpiexec(1, JOB, "finalize", "fourth.nc"))
        code, _, err = self.run_embedded(["sh", "-c", f"{jobs}; {beside}; wait"])
        self.assertEqual(code, 0, err)
        self.assert_staged(err, 4)
        two, one = self.native(2), self.native(1)
        for name, expected in (("first", two), ("second", two), ("third", one), ("fourth", one)):
            self.assertEqual(read_file(self.path(name + ".nc")), expected, name)
        self.assert_nothing_left()

    def test_a_program_without_launcher(self):
        code, _, err = self.run_embedded([JOB, "finalize", "out.nc"])
        self.assertEqual(code, 0, err)
        self.assert_staged(err)
        self.assertEqual(read_file(self.path("out.nc")), self.native(1))
        self.assert_nothing_left()

    def test_ends_without_finalising_and_with_open_files(self):
        for how, expected in (("exit", 3), ("open", 0)):
            with self.subTest(how=how):
                code, _, err = self.run_embedded([JOB, how, "out.nc"])
                self.assertEqual(code, expected, err)
                self.assertIn("staged ", err)
                self.assertNotIn("error", err)
                self.assertEqual(read_file(self.path("out.nc")), self.native(1))
        self.assert_nothing_left()

    def test_a_child_of_the_program(self):
        code, _, err = self.run_embedded([JOB, "fork", "out.nc"])   # of several processes it would take messages
        self.assertEqual(code, 0, err)
        self.assertIn("staged ", err)
        self.assertEqual(read_file(self.path("out.nc")), self.native(1))
        self.assertEqual(read_file(self.path("out.nc.child")), self.native(1))
        self.assert_nothing_left()

    def test_mpi_is_for_threads(self):
        code, out, err = self.run_embedded(mpiexec(2, JOB, "level", "out.nc"))
        self.assertEqual((code, out), (0, "level 3\n"), err)
        code, out, err = self.run_embedded(mpiexec(2, FORTRAN_JOB))
        self.assertEqual((code, out.split()), (0, ["T", "T"]), err)

    def test_a_program_without_mpi(self):
        code, _, err = self.run_embedded(["true"])
        self.assertEqual(code, 0, err)
        self.assertIn("nothing was staged", err)
        self.assert_nothing_left()

    def test_a_server_that_does_not_come(self):
        code, _, err = self.run_embedded(mpiexec(2, JOB, "finalize", "out.nc"),
                                         env={"NESSIE_STAGING_LISTEN": "nothing"})
        self.assertEqual(code, 0, err)
        self.assertIn("nothing", err)
        self.assertIn("not staged", err)
        self.assertEqual(read_file(self.path("out.nc")), self.native(2))
        self.assert_nothing_left()

    def test_a_process_that_is_killed_takes_its_server_along(self):
        job = self.start_nessie_run(mpiexec(2, JOB, "linger", "out.nc"), ["--embedded", "-m", "caching", "--json",
                                                                          self.path("summary.json")])
        self.assertEqual(job.process.stdout.readline(), "written\n")
        ranks = sorted(job.wait_for("embedded_job", 2), key=lambda process: process.pid)
        os.kill(ranks[0].pid, signal.SIGKILL)
        code, _, err = job.finish()
        self.assertNotIn(code, (0, 74), err)
        self.assertIn("ended with a staging server in it", err)
        with open(self.path("summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        for loss in summary["failures"]:
            self.assertTrue(loss["path"].endswith("out.nc"), loss)
            self.assertGreater(loss["bytes_acknowledged"], loss["bytes_in_file"])
        self.assert_nothing_left()

    def test_sigterm_waits_for_the_server(self):
        job = self.start_nessie_run([JOB, "linger", "out.nc"], ["--embedded", "-m", "caching"])
        self.assertEqual(job.process.stdout.readline(), "written\n")
        os.kill(job.wait_for("embedded_job")[0].pid, signal.SIGTERM)
        code, _, err = job.finish()
        self.assertEqual(code, 128 + signal.SIGTERM, err)
        self.assertIn("staged ", err)
        self.assertNotIn("error", err)
        self.assertEqual(read_file(self.path("out.nc")), self.native(1))
        self.assert_nothing_left()

    def test_mpi_abort_waits_for_the_server(self):
        """Where SIGTERM, which the launcher sends, and the process's own MPI_Abort end it at once, too."""
        expected = self.native(2)
        for how in ("abort", "abort-last") * 3:
            with self.subTest(how=how):
                code, _, err = self.run_embedded(mpiexec(2, JOB, how, "out.nc"), env={"NESSIE_CLOSE": "early"})
                self.assertEqual(code, 5, err)
                self.assertIn("nessie: staged ", err)
                self.assertNotIn("did not reach the file", err)
                self.assertEqual(read_file(self.path("out.nc")), expected)
                self.assertEqual(sorted(os.listdir(self.folder)), ["native.nc", "out.nc", "run"])
        self.assert_nothing_left()

    def test_a_run_that_is_killed(self):
        job = self.start_nessie_run(checkpoint(2, self.path("out"), **LONG), ["--embedded"])
        wait_until(lambda: os.path.exists(self.path("out.0002.nc")), "the second checkpoint")
        job.process.kill()
        job.finish()
        self.assert_nothing_left()

    @unsanitized("a preloaded library comes before the sanitizer's")
    def test_without_nessie_run(self):
        libraries = [os.path.join(BUILD, "lib", f"libnessie_{name}.so") for name in ("pnetcdf", "embedded")]
        environment = {"LD_PRELOAD": ":".join(libraries), "NESSIE_SERVERS": "embedded:1", "NESSIE_CLOSE": "early"}
        code, _, err = self.run_command(mpiexec(2, JOB, "finalize", "out.nc"), env=environment)
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(read_file(self.path("out.nc")), self.native(2))
        self.assert_nothing_left()

    def test_programs_that_share_a_job_and_each_have_a_world(self):
        splitter = {"LD_PRELOAD": os.path.join(BUILD, "lib", "libcommsplitter.so")}
        code, out, err = self.run_embedded([*mpiexec(2, JOB, "finalize", "a.nc"), ":", "-n", "2", FORTRAN_JOB,
                                            ":", "-n", "2", JOB, "finalize", "b.nc"], env=splitter)
        self.assertEqual(code, 0, out + err)
        self.assert_staged(err, 2)
        for name in ("a.nc", "b.nc"):
            self.assertEqual(read_file(self.path(name)), self.native(2), name)
        self.assert_nothing_left()

    def test_a_process_without_the_libraries(self):
        bare = ["env", "-u", "LD_PRELOAD", JOB, "finalize", "out.nc"]
        command = mpiexec(1, JOB, "finalize", "out.nc", ":", "-n", "1", *bare)
        code, _, err = self.run_embedded(command)
        self.assertEqual(code, 0, err)
        self.assertIn("runs without Nessie's librar", err)
        self.assertEqual(read_file(self.path("out.nc")), self.native(2))
        libraries = [os.path.join(BUILD, "lib", f"libnessie_{name}.so") for name in ("pnetcdf", "embedded")]
        code, _, err = self.run_command(command, env={
            "LD_PRELOAD": ":".join(libraries), "NESSIE_SERVERS": "embedded:1", "NESSIE_RUN_START_TIMEOUT": "1s"})
        self.assertNotEqual(code, 0, err)
        self.assertIn("must be the same for all", err)
        self.assert_nothing_left()

    def test_excludes_other_places(self):
        for option in (["--mpmd"], ["--place", "node"]):
            code, _, err = self.nessie_run(["true"], ["--embedded", *option])
            self.assertNotEqual(code, 0)
            self.assertIn("excludes", err)


if __name__ == "__main__":
    sys.exit(unittest.main())
