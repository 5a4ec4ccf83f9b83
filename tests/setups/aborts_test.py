# SPDX-License-Identifier: BSD-3-Clause
"""ncmpi_abort loses nothing that was put."""
import setups
from harness import mpiexec

QUICK = ["independent", "pending"]
ALL = ["independent", "fixed", "collective", "defining_again", "pending", "only_read"]


class Aborts(setups.SetupCase):
    def compare_ways(self, ways, modes, processes):
        for way in ways:
            with self.subTest(way=way, processes=processes):
                self.compare_apart(mpiexec(processes, setups.program("aborts"), way), modes)

    def test_what_was_put_before_is_in_the_file(self):
        self.compare_ways(QUICK, ["caching", "two"], 3)

    @setups.sweep
    def test_every_way_in_every_mode(self):
        self.compare_ways(ALL, list(setups.MODES), 3)
        self.compare_ways(ALL, ["caching", "two"], 1)


if __name__ == "__main__":
    setups.main()
