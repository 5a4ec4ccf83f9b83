# SPDX-License-Identifier: BSD-3-Clause
"""What nobody has written is zero in a new file, and never what was in some process's memory."""
import filecmp
import os

import setups
from harness import mpiexec


class Holes(setups.SetupCase):
    def test_they_are_the_same_in_all_modes(self):
        command = mpiexec(3, setups.program("holes"))
        files = []
        for label, mode, flags in (("caching", "caching", ()), ("direct", "direct", ()), ("two", "caching", ("-s", "2"))):
            outcome = self.staged(mode, command, label=label, flags=flags, env={"MALLOC_PERTURB_": "165"})
            self.assertEqual(outcome.code, 0, outcome.err)
            files.append(os.path.join(outcome.folder, "holes.nc"))
        for other in files[1:]:
            self.assertTrue(filecmp.cmp(files[0], other, shallow=False), f"{other} differs from {files[0]}")


if __name__ == "__main__":
    setups.main()
