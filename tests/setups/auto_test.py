# SPDX-License-Identifier: BSD-3-Clause
"""Mode auto, the default: what it leaves to native PnetCDF, and that nobody can tell by the files."""
import json

import setups
from harness import NESSIE, mpiexec


class Auto(setups.SetupCase):
    def auto(self, label, command, *flags):
        """Runs `command` as somebody does who sets nothing. The outcome, and the summary."""
        summary = self.path(label + ".json")
        outcome = self.run_in(label, [NESSIE, "run", "-M", "64M", "--json", summary, *flags, "--", *command])
        with open(summary, encoding="utf-8") as file:
            return outcome, json.load(file)

    def test_small_files_go_one_way_or_the_other_and_are_the_same(self):
        for processes, flags in ((1, ()), (2, ()), (2, ("-s", "2"))):
            with self.subTest(processes=processes, flags=flags):
                command = mpiexec(processes, setups.program("small_files"))
                label = f"{processes}{len(flags)}"
                native = self.native(command, label=label + ".native")
                outcome, summary = self.auto(label, command, *flags)
                self.assertEqual(native.code, 0, native.err)
                self.assert_same(native, outcome)
                self.assertEqual(summary["mode"], "auto")
                self.assertGreaterEqual(summary["left_native"], 3, "natively it is tried at least")
                self.assertIn("small", summary["why_left"])
                self.assertTrue(outcome.said("nessie: left to native PnetCDF: "), outcome.err)
                self.assertFalse(outcome.said("is not staged, but read and written"), outcome.err)

    def test_large_files_are_staged(self):
        command = mpiexec(2, setups.program("writer"), "out.nc", "4", "6")
        native = self.native(command)
        outcome, summary = self.auto("auto", command)
        self.assertEqual(native.code, 0, native.err)
        self.assert_same(native, outcome)
        self.assertEqual(summary["left_native"], 0)
        self.assertFalse(outcome.said("left to native"), outcome.err)

    def test_what_is_only_read_in_large_pieces_is_left(self):
        for how, left in (("runs", 1), ("wrong", 1), ("columns", 0), ("mixed", 0)):
            for flags in ((), ("-s", "2")):
                with self.subTest(how=how, flags=flags):
                    command = mpiexec(2, setups.program("large_reads"), self.path("large.nc"), how)
                    native = self.native(command, label=f"{how}{len(flags)}.native")
                    outcome, summary = self.auto(f"{how}{len(flags)}", command, *flags)
                    self.assertEqual((native.code, native.out), (outcome.code, outcome.out), outcome.err)
                    self.assertIn("0 wrong, counted", outcome.out)
                    self.assertEqual(summary["left_native"], left, outcome.err)

    def test_what_was_written_before_is_there_when_it_is_left(self):
        outcome, summary = self.auto("new", mpiexec(2, setups.program("large_reads"), "new.nc", "runs"))
        self.assertEqual((outcome.code, summary["left_native"]), (0, 1), outcome.err)
        self.assertIn("0 wrong, counted", outcome.out)

    def test_who_names_a_mode_gets_it(self):
        outcome, summary = self.auto("caching", mpiexec(1, setups.program("small_files")), "-m", "caching")
        self.assertEqual((outcome.code, summary["mode"], summary["left_native"]), (0, "caching", 0), outcome.err)


if __name__ == "__main__":
    setups.main()
