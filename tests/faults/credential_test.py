# SPDX-License-Identifier: BSD-3-Clause
"""A process that does not know the job's credential."""
import unittest

from harness import NESSIE, ProcessTestCase

WRONG = "0" * 63 + "1"


class WrongCredential(ProcessTestCase):
    def assert_refused(self, credential):
        script = f"NESSIE_CREDENTIAL={credential} {NESSIE} status; echo status=$?; {NESSIE} status >/dev/null; echo right=$?"
        code, out, err = self.nessie_run(["sh", "-c", script])
        self.assertEqual(code, 0, err)
        self.assertIn("status=1", out)
        self.assertIn("right=0", out, "the server was harmed by a stranger: " + err)
        self.assert_nothing_left()
        return err

    def test_is_refused_and_harms_nobody(self):
        self.assertIn("credential", self.assert_refused(WRONG).lower())

    def test_that_is_no_credential_at_all_is_refused(self):
        self.assert_refused("secret")

    def test_that_is_missing_is_refused(self):
        self.assert_refused("")


if __name__ == "__main__":
    unittest.main()
