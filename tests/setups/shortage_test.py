# SPDX-License-Identifier: BSD-3-Clause
"""What one process lacks hangs no other; and a process that can go on natively can go on."""
import os
import unittest

import setups
from harness import mpiexec
from identity_test import can


class ShortageCase(setups.SetupCase):
    def compare_short(self, what, rank, left, modes, **options):
        with self.subTest(what=what, rank=rank, left=left):
            command = mpiexec(3, setups.program("shortage"), what, str(rank), left)
            outcomes = self.compare_apart(command, modes, **options)
            self.assertNotIn("NC_E", outcomes[0].out)
            return outcomes


class Descriptors(ShortageCase):
    @setups.unsanitized("it looks at memory through pipes")
    def test_descriptors_that_are_enough_natively_are_enough(self):
        self.compare_short("create", 1, "2", ["caching"])
        self.compare_short("open", 2, "2", ["caching"])

    def test_leaving_define_mode_takes_no_descriptor(self):
        self.compare_short("enddef", 1, "0", ["caching"])

    def test_a_file_is_handed_back_to_native_pnetcdf_without_a_descriptor_left(self):
        self.compare_short("vard", 1, "0", ["caching"])

    @setups.sweep
    def test_the_same_of_root_and_with_two_servers(self):
        for what, left in (("create", "2"), ("open", "2"), ("enddef", "0")):
            for rank in (0, 1):
                self.compare_short(what, rank, left, ["caching", "two"])


class Ids(setups.SetupCase):
    def test_a_file_that_finds_no_room_in_pnetcdfs_table_is_not_open_anywhere(self):
        native, *_ = self.compare(mpiexec(1, setups.program("shortage"), "open", "0", "noid"), ["caching", "two"])
        self.assertIn("open: NC_ENFILE", native.out)

    def test_a_file_that_finds_no_room_in_pnetcdfs_table_is_not_made(self):
        native, *_ = self.compare(mpiexec(1, setups.program("shortage"), "create", "0", "noid"), ["caching", "two"])
        self.assertIn("create: NC_ENFILE", native.out)


@unittest.skipUnless(os.geteuid() == 0 and can("unshare", "-m", "true"), "unmounts /proc for a process, which root can")
class WithoutProc(ShortageCase):
    def test_if_one_process_cannot_stage_a_file_none_does(self):
        for what in ("create", "open"):
            _, staged = self.compare_short(what, 1, "noproc", ["caching"])
            self.assertTrue(staged.said("is not staged"), staged.err)

    def test_if_one_process_cannot_go_on_all_learn_it(self):
        staged = self.staged("caching", mpiexec(3, setups.program("shortage"), "enddef", "1", "noproc"))
        self.assertIn("enddef: NC_EFILE NC_EFILE NC_EFILE", staged.out, staged.err)
        self.assertIn("close: NC_NOERR NC_NOERR NC_NOERR", staged.out, staged.err)


if __name__ == "__main__":
    setups.main()
