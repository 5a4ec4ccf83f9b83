# SPDX-License-Identifier: BSD-3-Clause
"""Accesses by an MPI filetype: those that are native meet the file that the program opened, and no other, whatever its name."""
import os
import unittest

import setups
from harness import mpiexec

COLON = "wrfout_d01_2005-08-28_00:00:00"
WAYS = (("together", 1), ("together", 4), ("independent", 4), ("reading", 4))   # of files that lose their names


class Vard(setups.SetupCase):
    def compare_way(self, way, name, modes=("caching", "two"), processes=2, command=(), loss=""):
        with self.subTest(way=way, name=name, loss=loss, processes=processes):
            outcomes = self.compare_apart([*(command or mpiexec(processes)), setups.program("vard"), way, name, loss], modes)
            self.assertEqual(outcomes[0].code, 0, outcomes[0].err)

    def test_those_of_whole_elements_are_staged(self):
        native, *staged = self.compare(mpiexec(3, setups.program("vard"), "elements", "plain.nc"))
        self.assertEqual(native.code, 0, native.err)
        for outcome in staged:
            self.assertNotIn("not staged", outcome.err)

    def test_independent_ones_with_and_without_a_colon_in_the_name(self):
        self.compare_way("independent", "plain.nc")
        self.compare_way("independent", COLON)

    def test_a_file_that_is_handed_back_is_itself_for_good(self):
        self.compare_way("other_files", "plain.nc")
        self.compare_way("other_files", COLON)

    def test_another_file_that_the_name_might_mean_is_not_touched(self):
        for label in ("native", "caching"):
            with open(os.path.join(self.make(label), "ufs:out.nc"), "w", encoding="utf-8") as file:
                file.write("somebody else's\n" * 100)
        self.compare_way("other_files", "ufs:out.nc", ["caching"],
                         command=["mpiexec", "--oversubscribe", "--mca", "io", "romio321", "-n", "2"])

    def test_a_file_that_goes_by_its_name_no_more_is_itself_all_the_same(self):
        for way, loss in (("together", "renamed"), ("independent", "removed"), ("reading", "replaced")):
            self.compare_way(way, "plain.nc", processes=4, loss=loss)

    @setups.sweep
    def test_so_it_is_in_every_way_and_mode(self):
        for loss in ("renamed", "replaced", "removed"):
            for way, processes in WAYS:
                self.compare_way(way, "plain.nc", setups.MODES, processes, loss=loss)
            self.compare_way("together", COLON, loss=loss)

    @setups.sweep
    def test_below_the_other_MPI_IO_too(self):
        romio = ["mpiexec", "--oversubscribe", "--mca", "io", "romio321", "-n", "2"]
        for loss in ("renamed", "removed"):
            self.compare_way("together", "plain.nc", command=romio, loss=loss)

    @unittest.skipUnless(os.geteuid() == 0, "runs programs as another user, which root can")
    def test_a_file_that_its_user_has_closed_to_himself(self):
        self.let_others_in()
        self.compare_closed("together", 4, servers_of_root=False)

    @unittest.skipUnless(os.geteuid() == 0, "runs programs as another user, which root can")
    @setups.sweep
    def test_such_a_file_in_every_way(self):
        self.let_others_in()
        for servers_of_root in (True, False):
            for way, processes in WAYS:
                with self.subTest(servers_of_root=servers_of_root, way=way, processes=processes):
                    self.compare_closed(way, processes, servers_of_root)

    def compare_closed(self, way, processes, servers_of_root):
        program = [*mpiexec(processes), setups.program("vard"), way, "plain.nc", "closed"]
        for label in ("native", *setups.MODES):
            self.folder_of_nobody(label)
        outcomes = [self.native([*setups.AS_NOBODY, *program])]
        for mode in setups.MODES:
            command = [*setups.AS_NOBODY, *program] if servers_of_root else program
            before = [] if servers_of_root else [*setups.AS_NOBODY, "TMPDIR=/tmp"]
            outcomes.append(self.staged(mode, command, before=before))
            self.assert_same(outcomes[0], outcomes[-1])
        self.run_command(["rm", "-rf", *(outcome.folder for outcome in outcomes)])

    @unittest.skipUnless(os.geteuid() == 0, "runs programs as another user, which root can")
    def test_servers_that_the_network_alone_reaches_have_no_descriptor_to_lend(self):
        """All processes hear so alike, and what is under the name now is left alone."""
        self.let_others_in()
        for loss, code in {"renamed": "NC_ENOENT", "removed": "NC_ENOENT", "replaced": "NC_EFILE"}.items():
            with self.subTest(loss=loss):
                self.folder_of_nobody(loss)
                staged = self.staged("caching", mpiexec(4, setups.program("vard"), "reading", "plain.nc", loss), label=loss,
                                     before=[*setups.AS_NOBODY, "TMPDIR=/tmp"], env={"NESSIE_STAGING_LISTEN": "ofi"})
                self.assertIn(f"get by filetype: {code}", staged.out, staged.err)
                self.assertIn("it does not go by its name any more, and is not lent", staged.err)
                self.assertTrue(staged.was_staged, staged.err)
                if loss == "replaced":
                    with open(os.path.join(staged.folder, "plain.nc"), encoding="utf-8") as file:
                        self.assertEqual(file.read(), "somebody else's\n")

    def test_a_folder_with_a_colon(self):
        for label in ("native", "caching"):
            os.makedirs(self.path(f"{label}/a:b"))
        for way in ("independent", "other_files"):
            script = f"cd a:b && exec mpiexec --oversubscribe -n 2 {setups.program('vard')} {way} out.nc"
            self.compare(["sh", "-c", script], ["caching"])


if __name__ == "__main__":
    setups.main()
