# SPDX-License-Identifier: BSD-3-Clause
"""nessie serve, attach and stop: staging servers that outlive the jobs that use them."""
import os
import signal
import sys
import unittest

from harness import NESSIE, ProcessTestCase, checkpoint, marked_processes, read_file, wait_until


class Serve(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.env["XDG_STATE_HOME"] = self.path("state")

    def nessie(self, *words, **options):
        return self.run_command([NESSIE, *words], **options)

    def serve(self, *options):
        code, _, err = self.nessie("serve", "-M", "64M", *options)
        self.assertEqual(code, 0, err)
        return err

    def keeper(self):
        return next(process for process in marked_processes(self.mark) if process.words[1:2] == ["keep"])

    def attach(self, command, *words):
        return self.nessie("attach", *words, "--", *command)

    def stop(self, *words):
        code, _, err = self.nessie("stop", *words)
        self.assertEqual(code, 0, err)
        self.assert_nothing_left()
        return err

    def assert_nothing_left(self):
        super().assert_nothing_left()
        self.assertEqual(os.listdir(self.path("state/nessie/serve")), [])

    def assert_same(self, one, other, steps=2):
        for step in range(1, steps + 1):
            self.assertEqual(read_file(self.path(f"{one}.{step:04}.nc")), read_file(self.path(f"{other}.{step:04}.nc")))

    def test_jobs_one_after_the_other(self):
        self.run_command(checkpoint(2, "native"))
        self.assertIn("nessie attach default", self.serve("--servers", "2"))
        for name in ("first", "second"):
            code, _, err = self.attach(checkpoint(2, name))
            self.assertEqual(code, 0, err)
            self.assertIn("has staged 1.2 MiB", err)
            self.assert_same("native", name)
        err = self.stop()
        self.assertIn("second.0002.nc", err)
        self.assertIn("first.0001.nc", err)

    def test_jobs_at_the_same_time(self):
        self.run_command(checkpoint(2, "native", steps=5))
        self.serve("--mode", "caching", "--servers", "2")
        jobs = [self.job([NESSIE, "attach", "--", *checkpoint(2, f"job{i}", steps=5 * i + 5, compute_ms=20)]) for i in range(2)]
        for job, staged in zip(jobs, ("2.9 MiB", "5.9 MiB")):   # each has counted what is its own
            code, _, err = job.finish()
            self.assertEqual(code, 0, err)
            self.assertIn(f"has staged {staged} of it", err)
        for i in range(2):
            self.assert_same("native", f"job{i}", 5)
        self.stop("default")

    def test_what_a_program_that_is_killed_had_written_is_in_the_files(self):
        self.run_command(checkpoint(2, "native"))
        self.serve("--mode", "caching")
        job = self.job([NESSIE, "attach", "--", *checkpoint(2, "out", steps=400, compute_ms=50)])
        wait_until(lambda: os.path.exists(self.path("out.0003.nc")), "the third checkpoint")
        os.kill(job.wait_for("checkpoint", 2)[0].pid, signal.SIGKILL)
        code, _, err = job.finish()
        self.assertNotIn(code, (0, 74), err)
        self.assert_same("native", "out")
        self.stop()

    def test_several_by_their_names(self):
        self.serve("--name", "a")
        self.serve("--name", "b")
        code, _, err = self.attach(["true"])
        self.assertEqual(code, 1)
        self.assertIn("say which: a, b", err)
        code, _, err = self.attach(checkpoint(2, "out"), "b")
        self.assertEqual(code, 0, err)
        self.assertNotIn("out.0001.nc", self.nessie("stop", "a")[2])
        self.assertIn("out.0001.nc", self.stop())

    def test_what_cannot_be(self):
        self.assertIn("nothing is served", self.attach(["true"])[2])
        self.assertIn("nothing is served", self.nessie("stop")[2])
        self.assertIn("is no name", self.nessie("serve", "--name", "../a")[2])
        code, _, err = self.nessie("serve", env={"NESSIE_STAGING_LISTEN": "nothing"})
        self.assertEqual(code, 1)
        self.assertIn("nothing", err)
        self.serve()
        code, _, err = self.nessie("serve")
        self.assertEqual(code, 1)
        self.assertIn("nessie stop default", err)
        self.assertEqual(self.attach(["sh", "-c", "exit 3"])[0], 3)
        self.assertEqual(self.attach(["/no/such/program"])[0], 127)
        self.stop()

    def test_servers_that_were_killed_are_told_of_and_replaced(self):
        self.serve()
        self.kill_marked()
        wait_until(lambda: not marked_processes(self.mark), "the end of all")
        code, _, err = self.attach(["true"])
        self.assertEqual(code, 1)
        self.assertIn("was killed", err)
        self.assertEqual(self.nessie("clean")[0], 0)
        self.serve()
        self.stop()

    def test_stopped_while_it_is_killed(self):
        self.serve()
        server = [process for process in marked_processes(self.mark) if process.name == "nessied"]
        os.kill(server[0].pid, signal.SIGSTOP)   # so that the drain does not end
        stopping = self.job([NESSIE, "stop"])
        wait_until(lambda: not os.path.exists(self.path("state/nessie/serve/default.json")), "the record to go")
        for process in marked_processes(self.mark):
            if process.pid != stopping.process.pid:
                os.kill(process.pid, signal.SIGKILL)
        code, _, err = stopping.finish()
        self.assertEqual(code, 1)
        self.assertIn("it was killed", err)
        self.nessie("clean")
        self.assert_nothing_left()

    def test_a_keeper_that_is_told_to_end(self):
        self.serve()
        os.kill(self.keeper().pid, signal.SIGTERM)
        wait_until(lambda: not marked_processes(self.mark), "the end of all")
        self.assertIn("nothing is served", self.attach(["true"])[2])

    def test_a_composition(self):
        with open(self.path("job.toml"), "w", encoding="utf-8") as file:
            file.write('[[provider]]\ntype = "directory"\n[[provider]]\ntype = "staging"\n'
                       'settings = { mode = "caching", memory = "64M" }\n')
        self.run_command(checkpoint(2, "native"))
        code, _, err = self.nessie("serve", "job.toml")
        self.assertEqual(code, 0, err)
        code, _, err = self.attach(checkpoint(2, "out"))
        self.assertEqual(code, 0, err)
        self.assert_same("native", "out")
        self.assertEqual(self.attach([NESSIE, "directory", "list"])[0], 0)
        self.stop()

    def test_a_composition_without_staging(self):
        with open(self.path("job.toml"), "w", encoding="utf-8") as file:
            file.write('[[provider]]\ntype = "directory"\n')
        self.assertEqual(self.nessie("serve", "job.toml")[0], 0)
        code, out, _ = self.attach(["sh", "-c", f"echo ${{LD_PRELOAD-none}}; {NESSIE} directory list"])
        self.assertEqual((code, out.strip()), (0, os.environ.get("NESSIE_TEST_PRELOAD", "none")))
        self.stop()

    def test_a_composition_that_is_none(self):
        with open(self.path("job.toml"), "w", encoding="utf-8") as file:
            file.write('[[provider]]\ntype = "directry"\n')
        code, _, err = self.nessie("serve", "job.toml")
        self.assertEqual(code, 1)
        self.assertIn("directory", err)   # the nearest
        self.assert_nothing_left()

    def test_in_the_foreground(self):
        job = self.job([NESSIE, "serve", "--foreground"])
        wait_until(lambda: os.path.exists(self.path("state/nessie/serve/default.json")), "the record")
        self.assertEqual(self.attach(checkpoint(2, "out"))[0], 0)
        self.assertEqual(self.nessie("stop")[0], 0)
        code, _, err = job.finish()
        self.assertEqual(code, 0, err)
        self.assertIn("out.0001.nc", err)
        self.assert_nothing_left()


if __name__ == "__main__":
    sys.exit(unittest.main())
