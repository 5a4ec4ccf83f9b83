# SPDX-License-Identifier: BSD-3-Clause
"""ncmpi_abort loses nothing that was put."""
import setups
from harness import mpiexec

WAYS = ["independent", "fixed", "collective", "defining_again", "pending", "only_read"]


class Aborts(setups.SetupCase):
    def compare_ways(self, modes, processes):
        for way in WAYS:
            with self.subTest(way=way, processes=processes):
                self.compare(mpiexec(processes, setups.program("aborts"), way), modes)
                self.run_command(["rm", "-rf", *(self.path(label) for label in ("native", *modes))])

    def test_what_was_put_before_is_in_the_file(self):
        self.compare_ways(["caching"], 3)

    def test_also_what_a_single_process_put(self):
        self.compare_ways(["caching", "two"], 1)

    @setups.sweep
    def test_the_same_in_every_mode(self):
        self.compare_ways(list(setups.MODES), 3)


if __name__ == "__main__":
    setups.main()
