# SPDX-License-Identifier: BSD-3-Clause
"""Names are bytes: whatever native PnetCDF opens, under either MPI-IO layer, is staged; what it refuses is refused."""
import os

import setups
from harness import mpiexec

LAYERS = ("ompio", "romio321")
LONGEST = "long" * 62 + "name.nc"   # 255 bytes: Open MPI's own MPI-IO layer overruns a buffer of its own over it
PLAIN = ["plain.nc", "./sub/../sub/relative.nc", "sub/with blank.nc", "back\\slash%s{}$x'\".nc", "-dash.nc", "sub/\ttab.nc",
         "long" * 50 + ".nc", "new\nline.nc", os.fsdecode(b"r\xe9sum\xe9.nc"), os.fsdecode(b"\xa5\xc7\xa1.nc")]
COLONS = ["wrfout_d01_2005-08-28_00:00:00", "sub/a:b.nc", "ufs:sub/prefixed.nc", "ufs:both.nc", ":leading.nc",
          "trailing:", "c:d:e.nc"]
REFUSED = ["absent/folder.nc", "sub", "/dev/full/below"]


class Names(setups.SetupCase):
    def run_names(self, layer, names, modes, processes=2):
        def prepare(label):
            os.makedirs(self.path(f"{label}/sub"))
        for label in ("native", *modes):
            prepare(label)
        command = ["mpiexec", "--mca", "io", layer, "-n", str(processes), setups.program("names"), *names]
        outcomes = [self.native(command)]
        for mode in modes:
            outcomes.append(self.staged(mode, command))
            self.assert_same(outcomes[0], outcomes[-1], must_be_staged=names is not REFUSED)
            self.assertNotIn("not staged", outcomes[-1].err)
        self.assertEqual(outcomes[0].code, 0, outcomes[0].err)
        return outcomes

    def test_plain_names_of_all_bytes_are_staged(self):
        self.run_names("ompio", PLAIN, ["caching", "direct"])

    def test_names_with_colons_mean_the_same_file_as_natively_below_open_mpis_own_layer(self):
        self.run_names("ompio", COLONS, ["caching", "two"])

    def test_names_with_colons_mean_the_same_file_as_natively_below_romio(self):
        self.run_names("romio321", [*COLONS, LONGEST], ["caching"])

    def test_names_that_are_refused_natively_are_refused_with_the_same_code(self):
        self.run_names("ompio", REFUSED, ["caching"], processes=1)

    @setups.unsanitized("natively the code is by chance, where it could as well be a crash")
    def test_without_a_communicator_the_error_is_natives_and_nothing_is_made(self):
        command = mpiexec(1, setups.program("names"))
        for outcome in (self.native(command), self.staged("caching", command)):
            self.assertIn("code: NC_EFILE", outcome.err)
            self.assertEqual(os.listdir(outcome.folder), [])

    def test_a_relative_name_in_a_folder_with_blank_and_colon(self):
        command = mpiexec(2, setups.program("writer"), "out.nc")
        native = self.native(command)
        for mode in ("caching", "two"):
            os.makedirs(self.path(f"{mode}/a b:c"))
            staged = self.staged(mode, command, cwd=self.path(f"{mode}/a b:c"))
            staged.folder = self.path(f"{mode}/a b:c")
            self.assert_same(native, staged)

    def test_a_symbolic_link_leads_to_the_file_it_names(self):
        for label in ("native", "caching", "direct"):
            os.makedirs(self.path(label))
            os.symlink("target.nc", self.path(f"{label}/link.nc"))
        native, caching, direct = self.compare(mpiexec(2, setups.program("writer"), "link.nc"), ["caching", "direct"])
        for outcome in (native, caching, direct):
            self.assertTrue(os.path.islink(os.path.join(outcome.folder, "link.nc")))

    @setups.sweep
    def test_every_name_below_every_layer_in_every_mode(self):
        for layer in LAYERS:
            for number, names in enumerate((PLAIN, COLONS, REFUSED)):
                with self.subTest(layer=layer, names=number):
                    self.run_names(layer, names, list(setups.MODES), processes=1 if names is REFUSED else 3)
                    for label in ("native", *setups.MODES):
                        self.run_command(["rm", "-rf", self.path(label)])


if __name__ == "__main__":
    setups.main()
