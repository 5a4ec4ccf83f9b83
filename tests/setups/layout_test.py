# SPDX-License-Identifier: BSD-3-Clause
"""The same bytes with several servers, whichever of them keeps a file's header."""
import setups
from harness import NESSIE, mpiexec


class Layout(setups.SetupCase):
    def compare_with(self, files, servers):
        command = mpiexec(2, setups.program("redef"), str(files))
        native = self.native(command)
        for count in servers:
            staged = self.run_in(f"servers{count}", [NESSIE, "run", "-s", str(count), "-M", "64M", "--", *command])
            self.assert_same(native, staged)

    def test_after_alignments_and_redef_it_is_natives(self):
        self.compare_with(4, (1, 2, 3))

    @setups.sweep
    def test_of_many_files_on_many_servers(self):
        self.compare_with(12, (1, 2, 3, 5))


if __name__ == "__main__":
    setups.main()
