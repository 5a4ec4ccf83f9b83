# SPDX-License-Identifier: BSD-3-Clause
"""Several I/O threads in a process, each with files of its own. Natively they work by chance (Debian's PnetCDF is built
without thread safety), so the files are compared with those that one thread made."""
import os
import setups
from harness import mpiexec


class Threads(setups.SetupCase):
    def compare_with_one_thread(self, modes, threads, steps, processes=2, rounds=1):
        command = mpiexec(processes, setups.program("threads"), str(threads), str(steps))
        native = self.native([*command, "serial"])
        self.assertEqual(native.out, f"{threads} files, 0 wrong\n", native.err)
        for mode in modes:
            for _ in range(rounds):
                self.assert_same(native, self.staged(mode, command))
                for name in setups.files_below(self.path(mode)):
                    os.remove(os.path.join(os.fsencode(self.path(mode)), name))

    def test_four_threads_write_and_read_at_once(self):
        self.compare_with_one_thread(["caching", "direct"], threads=4, steps=12)

    def test_two_threads_with_two_servers(self):
        self.compare_with_one_thread(["two"], threads=2, steps=12, processes=3)

    def test_threads_open_files_of_every_kind_all_the_time(self):
        """In a layer of MPI-IO that takes a colon as native PnetCDF does, so that what was written can be opened."""
        command = ["mpiexec", "--mca", "io", "romio321", "-n", "1", setups.program("openings"), "6", "40"]
        native = self.native([*command, "serial"])
        self.assertEqual(native.out, "6 threads, 0 wrong\n", native.err)
        self.assert_same(native, self.staged("caching", command))

    def test_each_process_has_its_own_level_of_threads(self):
        self.compare(mpiexec(3, setups.program("levels")), ["caching"])

    @setups.sweep
    def test_again_and_again(self):
        self.compare_with_one_thread(list(setups.MODES), threads=3, steps=16, processes=3, rounds=12)


if __name__ == "__main__":
    setups.main()
