# SPDX-License-Identifier: BSD-3-Clause
"""A file system that is too small for the program's output."""
import json
import os
import subprocess
import unittest

from harness import ProcessTestCase, checkpoint


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
        code, _, err = self.nessie_run(command, options)
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
