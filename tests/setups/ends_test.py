# SPDX-License-Identifier: BSD-3-Clause
"""The beginning and the end of a process: files are used from its first instruction to its last."""
import os
import signal
import time

import setups
from harness import mpiexec, wait_until

QUICK = ["static", "atexit-before", "_exit", "in-finalize"]
ALL = [*QUICK, "atexit-after", "late-init", "fork-exit", "fork-exec", "system", "quick_exit", "return"]

CHILDREN = ["put", "close", "exit", "put-close", "pending", "abort", "read", "own", "grandchild", "redef", "define",
            "parent-closes"]
CHILDREN_OF_SEVERAL = ["put", "pending", "grandchild"]  # what natively works for a child of one of several processes


class Ends(setups.SetupCase):
    def compare_ways(self, ways, modes):
        for way in ways:
            with self.subTest(way=way):
                self.compare_apart(mpiexec(2, setups.program("static_end"), way), modes)

    def test_files_are_closed_and_mpi_is_finalized_after_main(self):
        self.compare_ways(QUICK, ["caching"])

    @setups.sweep
    def test_every_way_in_every_mode(self):
        self.compare_ways(ALL, list(setups.MODES))

    @setups.unsanitized("it starts no threads in children of processes that have some", "thread")
    def test_a_child_by_fork_uses_what_its_parent_has_open_and_the_parent_goes_on(self):
        for way in ("put", "exit", "parent-closes", "renamed", "removed"):
            with self.subTest(way=way):
                self.compare_apart(mpiexec(1, setups.program("forks"), way), ["caching"])
        with self.subTest("of one of several processes"):
            self.compare_apart(mpiexec(2, setups.program("forks"), "put"), ["two"])

    @setups.sweep
    def test_every_way_of_a_child_in_every_mode(self):
        for processes, ways in ((1, CHILDREN), (2, CHILDREN_OF_SEVERAL)):
            for way in ways:
                with self.subTest(way=way, processes=processes):
                    self.compare_apart(mpiexec(processes, setups.program("forks"), way))

    def test_who_is_killed_does_nothing_to_the_file_of_who_comes_after(self):
        """Another program of the run is there all the while, so that the servers cannot tell that all is over."""
        run = setups.program("restart")
        script = f"""{run} bystander & until [ -e there ]; do sleep 0.02; done
            for way in killed-while-defining killed-in-data-mode; do
              {run} $way; {run} whole; od -An -tx1 -N8 out.nc; wc -c < out.nc; done
            touch go; wait"""
        self.compare(["sh", "-c", script], ["caching"])

    @setups.unsanitized("its run time would start twice")
    def test_a_library_uses_files_after_the_program(self):
        for library in ("linked", "only", setups.program("liblate_plugin.so")):
            with self.subTest(library=library):
                self.compare_apart(mpiexec(2, setups.program("late"), library), ["caching"])

    @setups.unsanitized("its run time would start twice")
    def test_servers_in_the_programs_processes_end_after_its_last_use_of_files(self):
        for words in (["static_end", "static"], ["static_end", "in-finalize"], ["static_end", "_exit"], ["late", "linked"],
                      ["late", setups.program("liblate_plugin.so")]):
            with self.subTest(words=words):
                command = mpiexec(2, setups.program(words[0]), *words[1:])
                native, staged = self.native(command), self.staged("caching", command, flags=["--embedded"])
                self.assert_same(native, staged)
                self.run_command(["rm", "-rf", native.folder, staged.folder])

    def compare_interrupted(self, way, modes, processes=1):
        command = mpiexec(processes, setups.program("signals"), way)
        with self.subTest(way=way):
            native = self.native([*command, "calm"], label=f"native-{way}")
            for mode in modes:
                self.assert_same(native, self.staged(mode, command, label=f"{mode}-{way}"))

    @setups.unsanitized("these handlers call what handlers should not", "thread")
    def test_a_handler_uses_files_or_jumps_whatever_it_interrupts(self):
        for way in ("last-state", "jump", "every"):
            self.compare_interrupted(way, ["caching"])

    @setups.sweep
    def test_a_handler_interrupts_in_every_mode(self):
        for way in ("last-state", "jump", "every", "another"):
            self.compare_interrupted(way, list(setups.MODES))

    def test_a_handler_waits_some_seconds_for_a_call_and_not_longer(self):
        self.compare_interrupted("late", ["caching"], processes=2)

    def test_a_call_while_another_is_under_way_is_refused_and_harms_nothing(self):
        command = mpiexec(2, setups.program("nested"))
        native, staged = self.native(command), self.staged("caching", command)
        self.assertIn("within: NC_EFILE", staged.out)
        self.assertTrue(staged.said("called while a call of it was under way"), staged.err)
        staged.out = native.out
        self.assert_same(native, staged)

    def test_a_process_that_is_stopped_for_long_goes_on(self):
        """Ctrl-Z, a debugger, a batch system that makes room: longer than a silent process is waited for."""
        command = mpiexec(2, setups.program("writer"), "out.nc", "0.25", "400")
        native = self.native(command)
        job = self.job([*setups.nessie_run("caching"), *command], cwd=self.make("caching"), env={"NESSIE_STAGING_TIMEOUT": "1"})
        process = job.wait_for("writer", 2)[1]
        os.kill(process.pid, signal.SIGSTOP)
        end = time.monotonic() + 3
        wait_until(lambda: time.monotonic() > end, "three times as long to pass")
        os.kill(process.pid, signal.SIGCONT)
        self.assert_same(native, setups.Outcome(self.path("caching"), *job.finish()))


if __name__ == "__main__":
    setups.main()
