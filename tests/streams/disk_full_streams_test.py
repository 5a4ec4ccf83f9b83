# SPDX-License-Identifier: BSD-3-Clause
"""The disk of a server's log is full: who writes hears it, or waits, nothing is lost, and all goes on when there is room."""
import os
import subprocess
import unittest

from harness import wait_until
from peers import StreamsTestCase

MEGABYTE = 1 << 20


class FullDisk(StreamsTestCase):
    def setUp(self):
        super().setUp()
        self.disk = self.path("log")
        os.mkdir(self.disk)
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", self.disk], capture_output=True, text=True)
        if mount.returncode != 0:
            self.skipTest(f"needs a small file system, and may not mount one: {mount.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk])

    def fill(self):
        """So that the log cannot have one segment."""
        with open(f"{self.disk}/other", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 40 * MEGABYTE)

    def make_room(self):
        os.unlink(f"{self.disk}/other")

    def test_what_memory_has_no_room_for_waits_there_and_goes_on_by_itself(self):
        self.fill()
        server = self.start_server("--memory", "4M", "--set", "streams.keep=0")
        reader = self.read("--as", "slow")
        held = self.write(3, "--elements", 131_072, "--pause", 500)   # of a megabyte each
        reader.wait_for("step 0 ")
        reader.stop()
        self.assertEqual(held.end(), 0, held.lines)
        hasty = self.write(20, "--append", "--elements", 131_072, "--deadline", 1500)
        self.assertEqual(hasty.end(), 1)
        self.assertTrue(hasty.has("error: BUSY: .*No space left on device; make room there.*'slow'"), hasty.lines)
        patient = self.wait_for_writer(lambda: self.write(20, "--append", "--elements", 131_072))
        self.make_room()
        self.assertEqual(patient.end(), 0, patient.lines)
        reader.go_on()
        self.assertEqual(reader.end(), 0, reader.lines[-5:])
        self.assert_saw(reader, range(20))
        self.end_servers(server)

    def test_a_small_step_that_is_logged_is_refused_or_waits_and_none_is_lost(self):
        self.refuse_and_go_on(16)

    def test_a_large_step_that_is_logged_is_refused_or_waits_and_none_is_lost(self):
        self.refuse_and_go_on(200_000)

    def refuse_and_go_on(self, elements):
        self.fill()
        server = self.start_server()
        hasty = self.write(5, "--logged", "--elements", elements, "--deadline", 1500)
        self.assertEqual(hasty.end(), 1)
        self.assertTrue(hasty.has("error: BUSY: .*No space left on device; make room there"), hasty.lines)
        self.assertFalse(hasty.has("ended"), hasty.lines)
        self.make_room()
        patient = self.wait_for_writer(lambda: self.write(5, "--logged", "--append", "--elements", elements))
        reader = self.read("--as", "all")
        self.assertEqual(patient.end(), 0, patient.lines)
        self.assertEqual(reader.end(), 0, reader.lines)
        self.assert_saw(reader, range(5))
        self.end_servers(server)

    def test_steps_wait_for_room_and_are_there_after_a_kill(self):
        """The log has a segment, and no room for another one."""
        server = self.start_server()
        writer = self.write(12, "--logged", "--elements", MEGABYTE, "--pause", 1)   # eight megabytes each
        first = self.read("--as", "all", "--last", 0)   # from then on all are held
        self.assertEqual(first.end(), 0, first.lines)
        writer.wait_for("ended 5")
        before = wait_until(lambda: len(writer.numbers("ended")) > 5 and self.is_waiting(writer), "a full disk")
        self.assertTrue(before)
        subprocess.run(["mount", "-o", "remount,size=400m", self.disk], check=True)
        self.assertEqual(writer.end(), 0, writer.lines)
        server.kill()
        server = self.start_server()
        reader = self.read("--as", "all")
        self.assertEqual(reader.end(), 0, reader.lines)
        self.assert_saw(reader, range(1, 12))
        self.end_servers(server)

    @staticmethod
    def is_waiting(writer):
        """It does not come on."""
        count = len(writer.lines)
        try:
            wait_until(lambda: len(writer.lines) > count, "a line", 1.5)
        except AssertionError:
            return writer.process.poll() is None
        return False

    @staticmethod
    def wait_for_writer(start):
        """One who is let in: the servers see after a moment that the one before it has died."""
        def found():
            writer = start()
            try:
                writer.wait_for("begins with")
            except AssertionError:
                return None
            return writer
        return wait_until(found, "the stream to be free")


if __name__ == "__main__":
    unittest.main()
