# SPDX-License-Identifier: BSD-3-Clause
"""A staging server that is alive and does not answer (SIGSTOP)."""
import os
import signal
import unittest

from harness import ProcessTestCase, checkpoint


class StoppedServer(ProcessTestCase):
    def test_is_given_up_after_its_time_and_nothing_hangs(self):
        job = self.start_nessie_run(checkpoint(2, self.path("s3d"), steps=1000, compute_ms=20),
                                    env={"NESSIE_STAGING_TIMEOUT": "3s"})
        while "step    1" not in job.process.stdout.readline():
            pass
        os.kill(job.descendants("nessied")[0].pid, signal.SIGSTOP)
        code, _, err = job.finish()
        self.assertNotEqual(code, 0)
        self.assertIn("staging server 0", err)
        self.assert_nothing_left()

    def test_that_goes_on_in_time_is_no_failure(self):
        job = self.start_nessie_run(checkpoint(2, self.path("s3d"), steps=20, compute_ms=20, verify=True))
        while "step    1" not in job.process.stdout.readline():
            pass
        server = job.descendants("nessied")[0].pid
        os.kill(server, signal.SIGSTOP)
        os.kill(server, signal.SIGCONT)
        code, out, err = job.finish()
        self.assertEqual(code, 0, out + err)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
