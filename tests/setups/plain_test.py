# SPDX-License-Identifier: BSD-3-Clause
"""What every other test here builds on: the writer, in every mode."""
import setups
from harness import mpiexec


class PlainJob(setups.SetupCase):
    def test_writes_the_same_file_in_every_mode(self):
        self.compare(mpiexec(3, setups.program("writer"), "out.nc"))


if __name__ == "__main__":
    setups.main()
