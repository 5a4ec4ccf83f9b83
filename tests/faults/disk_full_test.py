# SPDX-License-Identifier: BSD-3-Clause
"""A file system that is too small for the program's output."""
import glob
import json
import os
import subprocess
import time
import unittest

from harness import ProcessTestCase, checkpoint, read_file, wait_until


class FullDisk(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.disk = self.path("disk")
        os.mkdir(self.disk)
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", self.disk], capture_output=True, text=True)
        if mount.returncode != 0:
            self.skipTest(f"needs a small file system, and may not mount one: {mount.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk])

    def fill(self, mode, servers, *more):
        """Writes more than fits. Returns the failures of the summary, and stderr."""
        command = checkpoint(2, os.path.join(self.disk, "s3d"), steps=2, grid="64,48,32")   # 7.5 MiB each
        options = ["--mode", mode, "--servers", str(servers), "--json", self.path("summary.json"), *more]
        code, _, err = self.nessie_run(command, options, env={"NESSIE_STAGING_PATIENCE": "0"})
        self.assertNotEqual(code, 0)
        with open(self.path("summary.json")) as file:
            return json.load(file)["failures"], err

    def test_in_caching_mode_names_the_file_and_the_ranges_that_did_not_make_it(self):
        for servers, more in ((1, []), (2, []), (1, ["--embedded"])):
            with self.subTest(servers=servers, more=more):
                failures, err = self.fill("caching", servers, *more)
                self.assertIn("No space left on device", err)
                self.assertTrue(failures, err)
                for failure in failures:
                    self.assertTrue(failure["path"].startswith(self.disk))
                    self.assertLess(failure["bytes_in_file"], failure["bytes_acknowledged"])
                    self.assertTrue(failure["missing"])
                    self.assertIn(failure["path"], err)
        self.assert_nothing_left()

    def run_until_there_is_room(self, prefix, options, **env):
        """Gives more room as soon as there is none, in which no file could be made. (exit code, stdout, stderr)."""
        job = self.start_nessie_run(checkpoint(2, prefix, steps=1, grid="64,48,32"), options, env=env)
        wait_until(lambda: os.statvfs(self.disk).f_bavail == 0, "the disk to be full")
        time.sleep(2)
        subprocess.run(["mount", "-o", "remount,size=64m", self.disk], check=True)
        return job.finish()

    def assert_whole(self, native, prefix):
        files = glob.glob(native + "*.nc")
        self.assertTrue(files)
        for path in files:
            self.assertEqual(read_file(path), read_file(prefix + path[len(native):]), path)

    def test_that_has_room_again_gets_whole_files_and_the_program_is_told_of_nothing(self):
        native = self.path("native")
        self.assertEqual(self.run_command(checkpoint(2, native, steps=1, grid="64,48,32"))[0], 0)
        for options in (["--mode", "caching"], ["--mode", "caching", "--servers", "2"], ["--mode", "direct"], ["--embedded"]):
            with self.subTest(options=options):
                for path in glob.glob(self.disk + "/*"):
                    os.unlink(path)
                subprocess.run(["mount", "-o", "remount,size=4m", self.disk], check=True)
                prefix = os.path.join(self.disk, "s3d")
                code, out, err = self.run_until_there_is_room(prefix, options)
                self.assertEqual(code, 0, out + err)
                self.assert_whole(native, prefix)
        self.assert_nothing_left()

    def test_that_has_room_again_gets_what_was_put_though_the_program_failed_at_once(self):
        code, out, err = self.run_until_there_is_room(os.path.join(self.disk, "s3d"), ["--mode", "caching", "--fail-fast"],
                                                      NESSIE_CLOSE="durable")
        self.assertNotIn(code, (0, 74), out + err)
        self.assertIn("No space left on device", err)
        self.assertNotIn("did not reach the file", err)
        self.assert_nothing_left()

    def test_in_direct_mode_is_the_programs_own_error(self):
        self.fill("direct", 1)
        self.assert_nothing_left()


class ForbiddenFolder(ProcessTestCase):
    def test_is_the_programs_own_error_as_it_is_natively(self):
        command = checkpoint(2, "/proc/nowhere/s3d", steps=1)
        native = self.run_command(command)
        staged = self.nessie_run(command)
        self.assertEqual(staged[0], native[0])
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
