# SPDX-License-Identifier: BSD-3-Clause
"""nessie files: how it is with the files of a run, while it goes on and afterwards."""
import json
import os
import signal
import unittest

from harness import NESSIE, checkpoint, compile_job, read_file
from killed_runs import KilledRunCase

SEGMENT = "server.0/log.0"


def contents_of(folder):
    """Of each file in it, its bytes, and when it was changed."""
    return {path: (read_file(path), os.stat(path).st_mtime_ns)
            for where, _, names in os.walk(folder) for path in (os.path.join(where, name) for name in names)}


class Files(KilledRunCase):
    def files(self, *words, expected=0, **options):
        code, out, err = self.run_command([NESSIE, "files", *words], **options)
        self.assertEqual(code, expected, out + err)
        return out + err

    def files_json(self, *words, expected=0, **options):
        said = json.loads(self.files("--json", *words, expected=expected, **options))
        self.assertEqual(said["exit_code"], expected)
        return said

    def environment_of(self, job):
        """What makes a command one of that run."""
        variables = read_file(f"/proc/{job.descendants(os.path.basename(self.writer()[-3]))[0].pid}/environ").decode().split("\0")
        return dict(each.split("=", 1) for each in variables if each.startswith(("NESSIE_SERVERS=", "NESSIE_CREDENTIAL=")))

    def test_of_a_run_that_goes_on(self):
        job = self.held_run(servers=2)
        run = self.environment_of(job)
        file, = self.files_json(env=run)["files"]
        self.assertEqual((file["path"], file["durability"], file["open"]), (self.path("step0.nc"), "logged", True))
        self.assertIn(file["state"], ("complete", "draining"))
        self.assertGreater(file["bytes_acknowledged"], 0)
        self.assertRegex(self.files(env=run), r"^1 file: 1 (complete|draining); ")
        here = self.files_json(*run["NESSIE_SERVERS"].split()[:1], env={"NESSIE_CREDENTIAL": run["NESSIE_CREDENTIAL"]})
        self.assertLessEqual(len(here["files"]), 1)
        one, other = job.descendants("nessied")
        os.kill(one.pid, signal.SIGSTOP)
        said = self.files_json(env={**run, "NESSIE_SERVERS": run["NESSIE_SERVERS"] + " tcp://127.0.0.1:1"}, expected=1)
        self.assertEqual(len(said["silent"]), 2, said)
        os.kill(one.pid, signal.SIGCONT)
        self.assertEqual(self.let_go(job)[0], 0)
        self.assert_equal_files()

    def test_of_a_log_that_a_server_has_open(self):
        job = self.held_run()
        file, = self.files_json(self.log_folder())["files"]
        self.assertEqual((file["state"], file["path"]), ("draining", self.path("step0.nc")))
        self.assertEqual(self.let_go(job)[0], 0)
        self.assert_equal_files()

    def test_of_a_run_that_was_killed_as_a_whole(self):
        folder = self.killed_run(is_cleaned=False)
        before = contents_of(folder)
        own = [os.path.join(self.runtime, name) for name in os.listdir(self.runtime)]
        for what in (folder, f"{folder}/server.0", own[0]):
            said = self.files_json(what, expected=74)
            file, = said["files"]
            self.assertEqual((file["state"], file["path"], file["durability"]), ("logged only", self.path("step0.nc"), "logged"))
            self.assertGreater(file["bytes_acknowledged"], 0)
            self.assertEqual(said["logs"], [f"{folder}/server.0"])
        out = self.files(folder, expected=74)
        self.assertRegex(out, r"^1 file: 1 logged only; 0 B of ")
        self.assertIn(f"`nessie recover {folder}/server.0`", out)
        self.assertEqual(contents_of(folder), before)
        os.mkdir(self.path("elsewhere"))
        for name, is_found in (("other.nc", True), ("elsewhere/other.nc", False)):
            os.rename(self.path("step0.nc"), self.path(name))
            self.assertEqual("moved to another folder, or removed" in self.files(folder, expected=74), not is_found)
            os.rename(self.path(name), self.path("step0.nc"))
        self.assertEqual(self.run_command([NESSIE, "recover", folder])[0], 0)
        self.assertIn("all is in the files", self.files(folder, expected=2))
        self.assert_equal_files()

    def test_of_what_no_log_keeps(self):
        job = self.start_nessie_run([compile_job(self.folder), "linger", "out.nc"], ["-m", "caching"])
        self.assertEqual(job.process.stdout.readline(), "written\n")
        self.kill_all_of(job)
        own = os.path.join(self.runtime, os.listdir(self.runtime)[0])
        said = self.files_json(own, expected=74)
        file, = said["files"]
        self.assertEqual(file["state"], "incomplete")
        self.assertTrue(file["missing"])
        self.assertIn("missing: " + file["missing"][0], self.files(own, expected=74))

    def test_of_a_log_that_was_cut_off(self):
        folder = self.killed_run()
        os.truncate(f"{folder}/{SEGMENT}", 10_000)
        said = self.files_json(folder, expected=74)
        self.assertEqual(said["files"], [])
        self.assertIn("10000 bytes", said["unreadable"][0])

    def test_of_a_summary(self):
        code, _, err = self.nessie_run(checkpoint(1, self.path("out")), ["--json", self.path("summary.json"), "-m", "caching"])
        self.assertEqual(code, 0, err)
        said = self.files_json(self.path("summary.json"))
        self.assertEqual({file["path"]: file["state"] for file in said["files"]},
                         {self.path(f"out.{step:04}.nc"): "complete" for step in (1, 2)})

    def test_of_what_is_none(self):
        os.mkdir(self.path("empty"))
        with open(self.path("text"), "w", encoding="utf-8") as text:
            text.write("{}")
        for what, why in (("empty", "there is no log in"), ("nowhere", "there is no"), ("text", "is no summary")):
            self.assertIn(why, self.files(self.path(what), expected=2))
        self.assertIn("NESSIE_SERVERS", self.files(expected=2))
        self.assertIn("Examples:", self.files("--help"))


if __name__ == "__main__":
    unittest.main()
