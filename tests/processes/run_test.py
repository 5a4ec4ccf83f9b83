# SPDX-License-Identifier: BSD-3-Clause
"""nessie run: exit codes, streams, environment, summary."""
import json
import shlex
import unittest

from harness import NESSIE, ProcessTestCase, checkpoint, mpiexec


class NessieRun(ProcessTestCase):
    def test_returns_the_programs_exit_code(self):
        for code in (0, 1, 3, 99):
            self.assertEqual(self.nessie_run(["sh", "-c", f"exit {code}"])[0], code)
        self.assert_nothing_left()

    def test_returns_128_plus_the_signal_that_killed_the_program(self):
        self.assertEqual(self.nessie_run(["sh", "-c", "kill -SEGV $$"])[0], 139)
        self.assert_nothing_left()

    def test_of_a_program_that_does_not_exist_returns_127_and_names_it(self):
        code, _, err = self.nessie_run(["/no/such/program"])
        self.assertEqual(code, 127)
        self.assertIn("/no/such/program", err)
        self.assert_nothing_left()

    def test_of_a_file_that_is_no_program_returns_126(self):
        with open(self.path("data"), "w"):
            pass
        self.assertEqual(self.nessie_run([self.path("data")])[0], 126)
        self.assert_nothing_left()

    def test_without_a_command_says_what_to_do(self):
        code, _, err = self.run_command([NESSIE, "run"])
        self.assertEqual(code, 2)
        self.assertIn("nessie run -- ", err)

    def test_passes_stdin_and_stdout_through(self):
        import subprocess
        job = self.start_nessie_run(["cat"], stdin=subprocess.PIPE)
        code, out, _ = job.finish(text="a line\nand another")
        self.assertEqual((code, out), (0, "a line\nand another"))
        self.assert_nothing_left()

    def test_passes_arguments_that_look_like_its_own(self):
        code, out, _ = self.nessie_run(["echo", "--servers", "--", "-m"])
        self.assertEqual((code, out), (0, "--servers -- -m\n"))

    def test_starts_as_many_servers_as_asked(self):
        code, out, _ = self.nessie_run(["sh", "-c", "echo $NESSIE_SERVERS | wc -w"], ["--servers", "3"])
        self.assertEqual((code, out.strip()), (0, "3"))
        self.assert_nothing_left()

    def test_waits_for_what_the_program_left_running(self):
        code, out, _ = self.nessie_run(["sh", "-c", "(sleep 0.3; echo late) & exit 0"])
        self.assertEqual((code, out), (0, "late\n"))
        self.assert_nothing_left()

    def test_ends_what_will_not_end(self):
        code, _, err = self.nessie_run(["sh", "-c", "(trap '' TERM; sleep 300) & exit 0"],
                                       env={"NESSIE_RUN_LINGER": "300ms"})
        self.assertEqual(code, 0, err)
        self.assert_nothing_left()

    def test_refuses_a_memory_size_that_is_none(self):
        code, _, err = self.nessie_run(["true"], ["--memory", "much"])
        self.assertEqual(code, 2)
        self.assertIn("much", err)

    def test_files_are_complete_for_the_next_command_of_a_script(self):
        code, _, err = self.run_command(checkpoint(2, self.path("native")))
        self.assertEqual(code, 0, err)
        script = shlex.join(checkpoint(2, self.path("staged")))
        for step in ("0001", "0002"):
            script += " && " + shlex.join(["cmp", self.path(f"native.{step}.nc"), self.path(f"staged.{step}.nc")])
        code, out, err = self.nessie_run(["sh", "-c", script], ["--servers", "2"])
        self.assertEqual(code, 0, out + err)
        self.assert_nothing_left()

    def test_summary_tells_what_was_staged_and_where_it_went(self):
        code, out, err = self.nessie_run(checkpoint(2, self.path("s3d")), ["--json", self.path("summary.json")])
        self.assertEqual(code, 0, err)
        self.assertIn("result bytes=", out)
        with open(self.path("summary.json")) as file:
            summary = json.load(file)
        self.assertEqual(summary["exit_code"], 0)
        self.assertEqual(summary["native"], [])
        self.assertGreater(summary["bytes_staged"], 0)
        self.assertEqual(summary["bytes_staged"], summary["bytes_drained"])
        self.assertEqual(sorted(file["path"] for file in summary["files"]),
                         [self.path("s3d.0001.nc"), self.path("s3d.0002.nc")])
        self.assertIn(self.path("s3d.0001.nc"), err)
        self.assert_nothing_left()

    def test_quiet_says_nothing(self):
        code, _, err = self.nessie_run(checkpoint(1, self.path("s3d")), ["--quiet"])
        self.assertEqual((code, err), (0, ""))

    def test_of_an_mpi_program_that_fails_returns_its_code(self):
        code, _, _ = self.nessie_run(mpiexec(2, "sh", "-c", "exit 4"))
        self.assertEqual(code, 4)
        self.assert_nothing_left()


class NessieStatus(ProcessTestCase):
    def test_shows_every_server_of_the_session(self):
        code, out, err = self.nessie_run([NESSIE, "status", "--json"], ["--servers", "2"])
        self.assertEqual(code, 0, err)
        self.assertEqual([json.loads(line)["index"] for line in out.splitlines()], [0, 1])
        self.assert_nothing_left()

    def test_without_servers_says_what_to_do(self):
        code, _, err = self.run_command([NESSIE, "status"])
        self.assertEqual(code, 1)
        self.assertIn("nessie run", err)


if __name__ == "__main__":
    unittest.main()
