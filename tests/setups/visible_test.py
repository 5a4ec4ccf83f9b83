# SPDX-License-Identifier: BSD-3-Clause
"""Right after a file was closed, or written to, every program of the run sees it as it sees it natively."""
import os
import signal

import setups
from harness import mpiexec, wait_until

WAYS = ["closed", "open", "renamed", "truncated", "others", "defined"]


class Visible(setups.SetupCase):
    def compare_ways(self, ways, modes):
        for way in ways:
            with self.subTest(way=way):
                self.compare(mpiexec(2, setups.program("visible"), way), modes)
                self.run_command(["rm", "-rf", *(self.path(label) for label in ("native", *modes))])

    def test_by_the_program_itself_and_by_others(self):
        self.compare_ways(WAYS, ["caching"])

    def test_with_two_servers(self):
        self.compare_ways(["closed", "open", "defined"], ["two"])

    def test_as_old_as_its_close(self):
        """Who picks the newest restart file, or has make compare times, is not misled by when the servers wrote."""
        self.compare(mpiexec(2, setups.program("visible"), "aged"), ["caching", "two"], env={"NESSIE_CLOSE": "early"})

    @setups.sweep
    def test_every_way_in_every_mode(self):
        self.compare_ways(WAYS, list(setups.MODES))

    def test_by_the_next_command_of_a_script_whatever_it_is(self):
        """Also by one that nothing can be preloaded into."""
        count = setups.program("count_bytes")
        script = (f"mpiexec --oversubscribe -n 2 {setups.program('visible')} closed 6 > /dev/null; {count} step2.nc; "
                  f"env -i {count} step2.nc; cksum step2.nc; md5sum < step1.nc")
        self.compare(["sh", "-c", script], ["caching", "two"])

    def test_in_whatever_way_a_program_looks(self):
        """At a file that is still open: what was put is in the server's memory until somebody looks."""
        count = setups.program("count_bytes")
        script = self.path("script")
        with open(script, "w") as file:
            file.write(f"#! {count} script.nc\n")
        os.chmod(script, 0o755)
        env = {"PATH": f"{setups.PROGRAMS}:{os.environ['PATH']}"}
        self.compare(mpiexec(1, setups.program("looks"), count, script), ["caching", "two"], env=env)

    def test_by_programs_of_a_run_within_the_run(self):
        """They look at the boards of both."""
        look = 'inner=${NESSIE_BOARDS#* } && cmp "$inner/board.1" "$1/board.0" && cmp "$inner/board.2" "$1/board.1" && echo $NESSIE_BOARDS'
        inner = 'exec "$@" "${NESSIE_BOARDS#* }"'
        command = [*setups.nessie_run("caching", ["-q"]), "sh", "-c", look, "sh"]
        outcome = self.staged("two", ["sh", "-c", inner, "sh", *command])
        self.assertEqual((outcome.code, outcome.out.split()[:1]), (0, ["3"]), outcome.err)

    def test_small_reads_see_what_is_written_past_pnetcdf(self):
        for way in ("created", "opened"):
            with self.subTest(way=way):
                self.compare_apart(mpiexec(2, setups.program("foreign"), way), ["caching", "two"])

    def test_a_killed_or_stopped_server_does_not_hold_up_who_opens_its_files(self):
        for number in (signal.SIGKILL, signal.SIGSTOP):
            with self.subTest(signal=number.name):
                job = self.start_nessie_run(mpiexec(1, setups.program("visible"), "held"), env={"NESSIE_STAGING_TIMEOUT": "1"})
                wait_until(lambda: self.run_command(["sh", "-c", "test -p ready && cat ready"])[0] == 0, "the file to be held")
                server = job.wait_for("nessied")[0]
                self.run_command(["kill", f"-{int(number)}", str(server.pid)])
                self.run_command(["sh", "-c", "echo > go; rm ready go"])
                _, out, err = job.finish()
                self.assertRegex(out, r"\d+ bytes", err)
                if number == signal.SIGSTOP:
                    self.assertIn("a file may be read before it is whole", err)


if __name__ == "__main__":
    setups.main()
