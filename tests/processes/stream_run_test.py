# SPDX-License-Identifier: BSD-3-Clause
"""nessie run --stream: other programs can follow the files of an unmodified one."""
import os
import time
import unittest

from harness import ProcessTestCase, checkpoint, marked_processes, wait_until


class StreamRun(ProcessTestCase):
    def contact(self):
        return os.path.join(self.runtime, "nessie", "streams", "default.contact")

    def after_contact(self, command):
        """The command, when other programs can find nessie-streams."""
        return ["sh", "-c", f"while ! test -e {self.contact()}; do sleep 0.05; done; exec {' '.join(command)}"]

    def assert_nobody_left(self):
        wait_until(lambda: not marked_processes(self.mark) or None, "the end of all processes", 60)
        self.assertFalse(os.path.exists(self.contact()))

    def test_is_there_while_the_program_runs_and_waits_for_nobody_where_nobody_reads(self):
        command = self.after_contact(checkpoint(2, self.path("ckpt")))
        begin = time.monotonic()
        code, out, err = self.nessie_run(command, ["--stream=*.nc", "--servers", "2"],
                                         env={"NESSIE_RUN_STREAM_LINGER": "600s"})
        self.assertEqual(code, 0, out + err)
        self.assertNotIn("warning", err)
        self.assertLess(time.monotonic() - begin, 300)  # not as long as it would wait for readers
        self.assert_nobody_left()

    def test_goes_with_a_program_that_is_killed(self):
        job = self.start_nessie_run(["sh", "-c", f"while ! test -e {self.contact()}; do sleep 0.05; done; kill -9 $$"],
                                    ["--stream"])
        code, out, err = job.finish()
        self.assertEqual(code, 137, out + err)
        self.assert_nobody_left()

    def test_is_not_for_servers_in_the_programs_own_processes(self):
        code, _, err = self.nessie_run(["true"], ["--stream", "--embedded"])
        self.assertNotEqual(code, 0)
        self.assertIn("--embedded", err)


if __name__ == "__main__":
    unittest.main()
