# SPDX-License-Identifier: BSD-3-Clause
"""nessie-transfer: a service that is started, found, and ended."""
import os
import signal
import unittest

from harness import BUILD, ProcessTestCase, read_file, wait_until

TRANSFER = os.path.join(BUILD, "bin", "nessie-transfer")


class Transfer(ProcessTestCase):
    def start(self, *options):
        """The job, and its URL."""
        file = self.path("url")
        job = self.job([TRANSFER, "--listen", "shm", "--url-file", file, *options])
        wait_until(lambda: os.path.exists(file) or job.process.poll() is not None, "the service's URL")
        self.assertIsNone(job.process.poll(), "the service ended")
        return job, read_file(file).decode()

    def test_prints_its_url_and_ends_when_told(self):
        for ending in (signal.SIGTERM, signal.SIGINT):
            job, url = self.start()
            job.process.send_signal(ending)
            code, out, err = job.finish()
            self.assertEqual((code, out, err), (0, url, ""))
            self.assertTrue(url.startswith("shm://"), url)
            self.assertFalse(os.path.exists(self.path("url")))
        self.assert_nothing_left()

    def test_can_be_reached(self):
        job, url = self.start()
        code, out, err = self.run_command([os.path.join(BUILD, "bin", "nessie"), "info", "--to", url.strip()])
        self.assertEqual(code, 0, out + err)
        job.process.terminate()
        self.assertEqual(job.finish()[0], 0)

    def test_says_how_it_is_used(self):
        code, out, err = self.run_command([TRANSFER, "--help"])
        self.assertEqual((code, err), (0, ""))
        for option in ("--listen", "--provider", "--threads", "--piece", "--most-encoded", "--url-file"):
            self.assertIn(option, out)

    def test_refuses_what_it_cannot_use(self):
        for options, word in ((["--threads", "many"], "--threads"), (["--piece", "0"], "--piece"), (["--piece"], "value"),
                              (["--colour", "red"], "--colour"), (["--listen", "pigeon"], "pigeon"),
                              (["--url-file", "/nowhere/url"], "/nowhere/url")):
            code, _, err = self.run_command([TRANSFER, *options])
            self.assertEqual(code, 2, err)
            self.assertIn(word, err)


if __name__ == "__main__":
    unittest.main()
