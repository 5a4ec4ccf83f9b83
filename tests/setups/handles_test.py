# SPDX-License-Identifier: BSD-3-Clause
"""Two handles, one file: what is visible natively, on one node, is visible."""
import setups
from harness import mpiexec

WAYS = ["monitor", "both_write", "open_before_close", "created_over", "copied_over", "deleted", "renamed", "each_its_own",
        "others_put", "handed_back", "native_writer", "one_is_native"]
NATIVE = ["handed_back", "native_writer", "one_is_native"]    # in the end, or one of the handles
PUT_OVER = ["put_over_small", "put_over_large", "put_over_by_two", "put_over_large_by_two"]


class Handles(setups.SetupCase):
    def ways_in(self, modes, ways=WAYS, processes=3):
        for way in ways:
            with self.subTest(way=way):
                native, *staged = self.compare_apart(mpiexec(processes, setups.program("handles"), way), modes)
                self.assertEqual(native.code, 0, native.err)
                for outcome in staged:
                    self.assertEqual(outcome.said("is not staged"), way in NATIVE, outcome.err)

    def test_each_handle_sees_at_once_what_was_put_through_another(self):
        self.ways_in(["caching", "two"])

    def test_what_was_put_last_stays(self):
        self.ways_in(["caching"], PUT_OVER, 2)

    @setups.sweep
    def test_what_was_put_last_stays_with_more_processes_and_servers(self):
        self.ways_in(["caching", "two", "direct"], PUT_OVER, 4)
        self.ways_in(["caching", "two"], ["put_over_by_two", "put_over_large_by_two"], 1)

    @setups.sweep
    def test_the_same_in_direct_mode(self):
        self.ways_in(["direct"])

    def test_a_second_program_of_the_same_run_appends(self):
        ranks = "mpiexec --oversubscribe -n 2 " + setups.program("handles")
        script = f"{ranks} begin_to_append && {ranks} append && {ranks} append"
        self.compare(["sh", "-c", script], ["caching", "two"])


if __name__ == "__main__":
    setups.main()
