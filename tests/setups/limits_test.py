# SPDX-License-Identifier: BSD-3-Clause
"""Limits are the program's: what it may have natively is enough with Nessie."""
import setups
from harness import mpiexec


def limited(limit, command):
    """The whole job below a limit of `ulimit`, as a shell or a batch system sets it."""
    return ["sh", "-c", f'ulimit {limit} && exec "$@"', "sh", *command]


class Limits(setups.SetupCase):
    def compare_below(self, limit, command, modes=("caching", "two"), **options):
        """`nessie run` itself is below the limit, too."""
        native = self.native(limited(limit, command), **options)
        self.assertEqual(native.code, 0, native.err)
        for mode in modes:
            staged = self.staged(mode, command, before=limited(limit, []), **options)
            self.assert_same(native, staged)

    def test_as_many_files_as_natively_may_be_open_at_once(self):
        self.compare_below("-S -n 256", mpiexec(2, setups.program("limits"), "many", "180"))

    def test_where_servers_may_not_have_more_descriptors_than_a_program_the_last_files_go_native(self):
        self.compare_below("-n 256", mpiexec(1, setups.program("limits"), "many", "180"))

    def test_servers_in_the_programs_processes_have_descriptors_beside_those_of_the_program(self):
        """Where they may not, as below "-n" for who is not root, the last files go native."""
        command = mpiexec(2, setups.program("limits"), "many", "80")
        for limit, before in (("-S -n 128", []), ("-n 256", ["setpriv", "--bounding-set=-all", "--inh-caps=-all"])):
            with self.subTest(limit=limit):
                native = self.native(limited(limit, command))
                self.assertEqual(native.code, 0, native.err)
                staged = self.staged("caching", command, before=[*limited(limit, []), *before], flags=["--embedded"])
                self.assert_same(native, staged)
                self.assertEqual("a staging server has no descriptors left" in staged.err, bool(before), staged.err)
                self.run_command(["rm", "-rf", self.path("native"), self.path("caching")])

    def test_a_file_longer_than_the_program_may_write_is_read(self):
        self.run_in("made", mpiexec(1, setups.program("writer"), "long.nc", "12"))
        self.compare_below("-f 65536", mpiexec(2, setups.program("limits"), "read", self.path("made/long.nc")))

    def test_where_one_process_may_not_write_what_staging_takes_the_file_is_native(self):
        """What a connection takes, or a header."""
        self.run_in("made", mpiexec(1, setups.program("limits"), "describe", self.path("made/file.nc")))
        for limit in (64 << 10, 7 << 19):
            with self.subTest(limit=limit):
                command = mpiexec(2, setups.program("limits"), "read", self.path("made/file.nc"), str(limit))
                outcomes = self.compare_apart(command, ["caching"], must_be_staged=False)
                self.assertEqual(outcomes[0].code, 0, outcomes[0].err)
                self.assertIn("another process of the program cannot reach the staging servers, or hold its header",
                              outcomes[1].err)

    @setups.unsanitized("it takes terabytes of address space")
    def test_what_is_enough_for_the_program(self):
        """If it is not for servers, and they may not have more, there are none."""
        writer = [setups.program("writer"), "out.nc"]
        for limit, command in (("-v 500000", mpiexec(2, *writer)), ("-v 700000", mpiexec(2, *writer)),
                               ("-f 1000", ["sh", "-c", "echo no MPI > out.txt"])):
            with self.subTest(limit=limit):
                native = self.native(limited(limit, command))
                staged = self.staged("caching", command, before=limited(limit, []))
                self.assertEqual(native.code, 0, native.err)
                self.assert_same(native, staged, must_be_staged=False)
                self.assertTrue(staged.was_staged or "nothing was staged" in staged.err, staged.err)
                self.run_command(["rm", "-rf", self.path("native"), self.path("caching")])

    def test_small_stacks_processes_and_core_dumps(self):
        for limit in ("-c 0", "-S -s 1024", "-S -s unlimited"):
            with self.subTest(limit=limit):
                self.compare_below(limit, mpiexec(2, setups.program("writer"), "out.nc"), ["caching"])
                self.run_command(["rm", "-rf", self.path("native"), self.path("caching")])


if __name__ == "__main__":
    setups.main()
