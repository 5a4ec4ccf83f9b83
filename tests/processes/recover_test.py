# SPDX-License-Identifier: BSD-3-Clause
"""nessie recover: files are finished from the logs of a run of which nothing is left."""
import fcntl
import json
import os
import signal
import unittest

from harness import NESSIE, checkpoint, read_file, wait_until
from killed_runs import KilledRunCase

SEGMENT = "log.0"


class Recover(KilledRunCase):
    def recover(self, folder, *options):
        return self.run_command([NESSIE, "recover", folder, *options])

    def recover_json(self, folder, expected):
        code, out, err = self.recover(folder, "--json")
        self.assertEqual(code, expected, out + err)
        said = json.loads(out)
        self.assertEqual(said["exit_code"], code)
        return said

    def assert_gone(self, folder):
        self.assertFalse(os.path.exists(folder))
        self.assert_nothing_left()

    def test_of_a_run_that_was_killed_as_a_whole(self):
        folder = self.killed_run()
        code, out, err = self.recover(folder)
        self.assertEqual(code, 0, out + err)
        self.assertIn("step0.nc: complete", out)
        self.assert_equal_files()
        self.assert_gone(folder)
        code, out, err = self.recover(folder)
        self.assertEqual(code, 0, out + err)
        self.assertIn("nothing to do", out)

    def test_of_two_servers_and_of_one_of_them_first(self):
        folder = self.killed_run(servers=2)
        for index in (0, 1):
            if os.path.exists(f"{folder}/server.{index}"):
                self.recover_json(f"{folder}/server.{index}/", 0)
        self.assert_equal_files()
        self.assert_gone(folder)

    def test_that_is_killed_in_the_middle_and_done_again(self):
        folder = self.killed_run()
        for _ in range(3):
            job = self.job([NESSIE, "recover", folder])
            wait_until(lambda job=job: job.process.poll() is not None or job.descendants("nessied"), "a server")
            self.kill_marked()
            job.finish()
        self.assertEqual(self.recover(folder)[0], 0)
        self.assert_equal_files()
        self.assertFalse(os.path.exists(folder))

    def test_of_a_file_that_has_another_name(self):
        folder = self.killed_run()
        os.rename(self.path("step0.nc"), self.path("other.nc"))
        self.assertTrue(self.recover_json(folder, 0)["files"][0]["complete"])
        os.rename(self.path("other.nc"), self.path("step0.nc"))
        self.assert_equal_files()
        self.assert_gone(folder)

    def test_of_a_file_that_was_moved_to_another_folder(self):
        folder = self.killed_run()
        os.mkdir(self.path("elsewhere"))
        os.rename(self.path("step0.nc"), self.path("elsewhere/other.nc"))
        file, = self.recover_json(folder, 74)["files"]
        self.assertFalse(file["complete"])
        self.assertIn("moved to another folder, or removed", file["message"])
        self.assertGreater(file["bytes_acknowledged"], 0)
        with open(self.path("step0.nc"), "w", encoding="utf-8") as another:
            another.write("another one")
        said = self.recover_json(folder, 74)
        self.assertIn("another file has its name", said["files"][0]["message"])
        self.assertEqual(said["left"], [f"{folder}/server.0"])
        self.assertEqual(read_file(self.path("step0.nc")), b"another one")
        os.rename(self.path("elsewhere/other.nc"), self.path("step0.nc"))
        self.assertTrue(self.recover_json(folder, 0)["files"][0]["complete"])
        self.assert_equal_files()
        self.assert_gone(folder)

    def test_of_a_log_that_was_cut_off(self):
        folder = self.killed_run()
        os.truncate(f"{folder}/server.0/{SEGMENT}", 10_000)
        said = self.recover_json(folder, 74)
        self.assertIn("10000 bytes", said["files"][0]["message"])
        self.assertEqual(said["left"], [f"{folder}/server.0"])
        self.assert_nothing_left()

    def test_not_of_a_log_that_a_server_has(self):
        folder = self.killed_run()
        with open(f"{folder}/server.0/lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            code, _, err = self.recover(folder)
            self.assertEqual(code, 1)
            self.assertIn("a staging server has", err)
        self.assertEqual(self.recover(folder)[0], 0)
        self.assert_equal_files()

    def test_that_is_told_to_end(self):
        folder = self.killed_run()
        job = self.job([NESSIE, "recover", folder])
        server = wait_until(lambda: job.process.poll() is not None or job.descendants("nessied"), "a server")
        if server is not True:
            job.process.send_signal(signal.SIGTERM)
        self.assertIn(job.finish()[0], (0, 143))
        self.assert_nothing_left()
        self.assertEqual(self.recover(folder)[0], 0)
        self.assert_equal_files()

    def test_of_a_program_that_had_closed_its_files(self):
        code, out, err = self.run_command(checkpoint(2, self.path("native"), steps=2))
        self.assertEqual(code, 0, out + err)
        command = " ".join(checkpoint(2, self.path("staged"), steps=2))
        job = self.start_nessie_run(["sh", "-c", f"{command}; touch written; sleep 60"],
                                    ["--durability", "*.nc=logged", "--log", self.path("logs")])
        wait_until(lambda: os.path.exists(self.path("written")), "the program")
        self.kill_marked()
        job.finish()
        folder, = os.listdir(self.path("logs"))
        self.assertEqual(self.recover(self.path(f"logs/{folder}"))[0], 0)
        for step in (1, 2):
            self.assertEqual(read_file(self.path(f"native.{step:04}.nc")), read_file(self.path(f"staged.{step:04}.nc")))

    def test_of_what_is_no_folder_of_logs(self):
        os.mkdir(self.path("empty"))
        for folder, why in (("nowhere", "is no folder of logs"), ("empty", "there is no log in")):
            code, _, err = self.recover(self.path(folder))
            self.assertEqual(code, 2)
            self.assertIn(why, err)
        self.assertEqual(self.run_command([NESSIE, "recover"])[0], 2)


if __name__ == "__main__":
    unittest.main()
