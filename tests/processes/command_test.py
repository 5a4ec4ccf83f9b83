# SPDX-License-Identifier: BSD-3-Clause
"""The nessie command itself: what it says of command lines that it does not understand."""
import unittest

from harness import NESSIE, ProcessTestCase


class Command(ProcessTestCase):
    def refusal_of(self, *words):
        code, out, err = self.run_command([NESSIE, *words])
        self.assertEqual((code, out), (2, ""), err)
        return err

    def test_that_is_unknown_is_named(self):
        self.assertEqual("there is no command 'frob' of nessie\nRun with --help for more information.\n",
                         self.refusal_of("frob"))
        self.assertIn("there is no command 'frob' of nessie directory\n", self.refusal_of("directory", "frob"))
        self.assertIn("there is no option '--frob' of nessie\n", self.refusal_of("--frob"))

    def test_that_is_misspelt_is_told_with_the_one_that_may_be_meant(self):
        self.assertIn("there is no command 'staus' of nessie; did you mean 'status'?\n", self.refusal_of("staus"))
        self.assertIn("'lst' of nessie directory; did you mean 'list'?\n", self.refusal_of("directory", "lst"))

    def test_that_lacks_is_asked_for(self):
        self.assertIn("A subcommand is required", self.refusal_of())

    def test_words_before_the_program_that_are_no_option_are_refused(self):
        for command in ("run", "check"):
            self.assertEqual(f"nessie {command}: there is no option '--frob'\n",
                             self.refusal_of(command, "--frob", "--", "true"))
            self.assertIn("there is no option '--frob'", self.refusal_of(command, "--frob", "true"))
            self.assertIn("'frob' stands before '--'", self.refusal_of(command, "frob", "--", "true"))
        self.assertIn("'--memroy'; did you mean '--memory'?", self.refusal_of("run", "--memroy", "4G", "--", "true"))
        self.assertIn("excludes --beside", self.refusal_of("run", "--beside", "--embedded", "--", "true"))

    def test_options_behind_the_program_are_its_own(self):
        for dashes in ((), ("--",)):
            code, out, err = self.run_command([NESSIE, "run", "-q", *dashes, "echo", "--frob", "-q"])
            self.assertEqual((code, out), (0, "--frob -q\n"), err)

    def test_that_asks_for_more_servers_than_programs_look_at_is_refused(self):
        self.assertIn("Value 65 not in range", self.refusal_of("run", "--servers", "65", "--", "true"))

    def test_help_lists_the_commands(self):
        code, out, _ = self.run_command([NESSIE, "--help"])
        self.assertEqual(code, 0)
        for name in ("run", "check", "info", "doctor", "clean", "directory", "idl", "status", "trace", "bench"):
            self.assertIn(f"\n  {name} ", out)


if __name__ == "__main__":
    unittest.main()
