# SPDX-License-Identifier: BSD-3-Clause
"""The beginning and the end of a process: files are used from its first instruction to its last."""
import setups
from harness import mpiexec

QUICK = ["static", "atexit-before", "_exit"]
ALL = ["static", "atexit-before", "atexit-after", "late-init", "fork-exit", "fork-exec", "system", "_exit", "quick_exit", "return"]


class Ends(setups.SetupCase):
    def compare_ways(self, ways, modes):
        for way in ways:
            with self.subTest(way=way):
                self.compare(mpiexec(2, setups.program("static_end"), way), modes)
                self.run_command(["rm", "-rf", *(self.path(label) for label in ("native", *modes))])

    def test_files_are_closed_and_mpi_is_finalized_after_main(self):
        self.compare_ways(QUICK, ["caching"])

    @setups.sweep
    def test_every_way_in_every_mode(self):
        self.compare_ways(ALL, list(setups.MODES))


if __name__ == "__main__":
    setups.main()
