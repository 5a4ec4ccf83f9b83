# SPDX-License-Identifier: BSD-3-Clause
"""Mode auto, the default: what it leaves to native PnetCDF, and that nobody can tell by the files."""
import json
import os
import shutil
import tempfile

import setups
from harness import NESSIE, mpiexec


class Auto(setups.SetupCase):
    def auto(self, label, command, *flags, **options):
        """Runs `command` as somebody does who sets nothing. The outcome, and the summary."""
        summary = self.path(label + ".json")
        outcome = self.run_in(label, [NESSIE, "run", "-M", "64M", "--json", summary, *flags, "--", *command], **options)
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

    def test_what_is_written_in_large_pieces_into_memory_by_all_cores_is_left(self):
        self.folder, on_disk = tempfile.mkdtemp(prefix="nt-", dir="/dev/shm"), self.folder
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(setattr, self, "folder", on_disk)
        two_cores = ["taskset", "-c", ",".join(str(core) for core in sorted(os.sched_getaffinity(0))[:2])]
        romio, ompio = {"OMPI_MCA_io": "romio321"}, {"OMPI_MCA_io": "ompio"}
        cases = [("runs", (), romio, 1), ("runs", ("-s", "2"), romio, 1), ("wrong", (), romio, 1),
                 ("runs", (), ompio, 0), ("runs", ("-m", "caching"), romio, 0)]
        cases += [(how, (), romio, 0) for how in ("other", "columns", "pending", "independent", "filled", "laid")]
        for number, (how, flags, env, left) in enumerate(cases):
            with self.subTest(how=how, flags=flags, **env):
                command = [*two_cores, *mpiexec(2, setups.program("large_writes"), "out.nc", how)]
                native = self.native(command, label=f"{number}.native", env=env)
                outcome, summary = self.auto(str(number), command, *flags, env=env)
                self.assertEqual(native.code, 0, native.err)
                self.assert_same(native, outcome, must_be_staged=left == 0)
                self.assertEqual(summary["left_native"], left, outcome.err)
                self.run_command(["rm", "-r", native.folder, outcome.folder])

    def test_who_names_a_mode_gets_it(self):
        outcome, summary = self.auto("caching", mpiexec(1, setups.program("small_files")), "-m", "caching")
        self.assertEqual((outcome.code, summary["mode"], summary["left_native"]), (0, "caching", 0), outcome.err)


if __name__ == "__main__":
    setups.main()
