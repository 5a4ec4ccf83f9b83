# SPDX-License-Identifier: BSD-3-Clause
"""Accesses by an MPI filetype meet the file that the program opened, and no other, whatever its name."""
import os

import setups
from harness import mpiexec

COLON = "wrfout_d01_2005-08-28_00:00:00"


class Vard(setups.SetupCase):
    def compare_way(self, way, name, modes=("caching", "two"), processes=2, command=()):
        with self.subTest(way=way, name=name):
            self.compare_apart([*(command or mpiexec(processes)), setups.program("vard"), way, name], modes)

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

    def test_a_folder_with_a_colon(self):
        for label in ("native", "caching"):
            os.makedirs(self.path(f"{label}/a:b"))
        for way in ("independent", "other_files"):
            script = f"cd a:b && exec mpiexec --oversubscribe -n 2 {setups.program('vard')} {way} out.nc"
            self.compare(["sh", "-c", script], ["caching"])


if __name__ == "__main__":
    setups.main()
