# SPDX-License-Identifier: BSD-3-Clause
"""Many requests pending, in odd orders; many small reads, which copies answer, while others write: as natively."""
import setups
from harness import mpiexec


class Many(setups.SetupCase):
    def test_requests_and_small_reads_give_what_they_give_natively(self):
        self.compare(mpiexec(2, setups.program("many")), ["caching", "two"])

    def test_where_requests_meet_what_was_posted_last_stays(self):
        for mode in setups.MODES:
            with self.subTest(mode=mode):
                staged = self.staged(mode, mpiexec(2, setups.program("many"), "overlapping"))
                self.assertEqual((staged.code, staged.out), (0, "overlapping: 0 wrong\n"), staged.err)

    @setups.sweep
    def test_the_same_in_direct_mode(self):
        self.compare(mpiexec(3, setups.program("many")), ["direct"])


if __name__ == "__main__":
    setups.main()
