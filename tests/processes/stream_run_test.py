# SPDX-License-Identifier: BSD-3-Clause
"""nessie run --stream: other programs can follow the files of an unmodified one."""
import glob
import json
import os
import time
import unittest

from harness import NESSIE, ProcessTestCase, checkpoint, marked_processes, wait_until


class StreamRun(ProcessTestCase):
    def contacts(self):
        return sorted(glob.glob(os.path.join(self.runtime, "nessie", "streams", "*.contact")))

    def where_streams_are_found(self, command):
        """The command, where other programs find nessie-streams."""
        return ["sh", "-c", f"ls {self.runtime}/nessie/streams/run.*.contact > /dev/null && {' '.join(command)}"]

    def assert_nobody_left(self):
        wait_until(lambda: not marked_processes(self.mark) or None, "the end of all processes", 60)
        self.assertEqual(self.contacts(), [])

    def test_is_there_while_the_program_runs_and_waits_for_nobody_where_nobody_reads(self):
        command = self.where_streams_are_found(checkpoint(2, self.path("ckpt")))
        begin = time.monotonic()
        code, out, err = self.nessie_run(command, ["--stream=*.nc", "--servers", "2"],
                                         env={"NESSIE_RUN_STREAM_LINGER": "600s"})
        self.assertEqual(code, 0, out + err)
        self.assertNotIn("warning", err)
        self.assertLess(time.monotonic() - begin, 300)  # not as long as it would wait for readers
        self.assert_nobody_left()

    def test_goes_with_a_program_that_is_killed(self):
        job = self.start_nessie_run(self.where_streams_are_found(["kill -9 $$"]), ["--stream"])
        code, out, err = job.finish()
        self.assertEqual(code, 137, out + err)
        self.assert_nobody_left()

    def test_two_runs_at_once_have_each_their_own_streams(self):
        names = ("one", "two")
        script = f"{' '.join(checkpoint(2, 'ckpt'))} && touch written && while ! test -e ../enough; do sleep 0.05; done"
        runs = []
        for name in names:
            os.mkdir(self.path(name))
            runs.append(self.start_nessie_run(["sh", "-c", script], ["--stream=*.nc"], cwd=self.path(name)))
        wait_until(lambda: all(os.path.exists(self.path(f"{name}/written")) for name in names), "both programs")
        streams = wait_until(lambda: self.listed(4), "the files of both")
        self.assertEqual({stream["at"] for stream in streams}, {f"file:{contact}" for contact in self.contacts()})
        self.assertEqual(len({stream["name"] for stream in streams}), 2)
        name = streams[0]["name"]
        code, out, refusal = self.run_command([NESSIE, "stream", "tail", name, "--steps", "1"])
        self.assertEqual(code, 1, out)
        for contact in self.contacts():
            self.assertIn(contact, refusal)
            command = [NESSIE, "stream", "tail", name, "--steps", "1", "--from", "oldest", "--at", f"file:{contact}"]
            code, out, err = self.run_command(command)
            self.assertEqual(code, 0, out + err)
        open(self.path("enough"), "w").close()
        for run in runs:
            code, out, err = run.finish()
            self.assertEqual(code, 0, out + err)
        self.assert_nobody_left()

    def test_a_stream_that_only_one_of_two_runs_has_is_found(self):
        script = "while ! test -e enough; do sleep 0.05; done"
        other = self.start_nessie_run(["sh", "-c", script], ["--stream"])
        program = " ".join(checkpoint(2, "ckpt"))
        run = self.start_nessie_run(["sh", "-c", f"{program} && {script}"], ["--stream=*.nc"])
        name = wait_until(lambda: len(self.contacts()) == 2 and self.listed(2), "the streams")[0]["name"]
        code, out, err = self.run_command([NESSIE, "stream", "tail", name, "--steps", "1", "--from", "oldest"])
        self.assertEqual(code, 0, out + err)
        open(self.path("enough"), "w").close()
        for job in (other, run):
            code, out, err = job.finish()
            self.assertEqual(code, 0, out + err)

    def listed(self, count):
        """What `nessie stream list` shows, if there are so many."""
        _, out, _ = self.run_command([NESSIE, "stream", "list", "--json"])
        streams = [json.loads(line) for line in out.splitlines()]
        return streams if len(streams) == count else None

    def test_is_not_for_servers_in_the_programs_own_processes(self):
        code, _, err = self.nessie_run(["true"], ["--stream", "--embedded"])
        self.assertNotEqual(code, 0)
        self.assertIn("--embedded", err)


if __name__ == "__main__":
    unittest.main()
