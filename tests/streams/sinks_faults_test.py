# SPDX-License-Identifier: BSD-3-Clause
"""What those who hand steps on say when a disk is full, the other side is no receiver, or has another credential."""
import os
import signal
import socket
import struct
import subprocess
import threading
import unittest

from harness import BUILD, wait_until
from sinks_test import WRITER, OtherReceiver, Streams, crc32c, steps_in

WRONG = "0" * 63 + "1"


class FullDisk(Streams):
    def setUp(self):
        super().setUp()
        self.disk = self.path("disk")
        os.mkdir(self.disk)
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", self.disk], capture_output=True, text=True)
        if mount.returncode != 0:
            self.skipTest(f"needs a small file system, and may not mount one: {mount.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk])

    def make_room(self):
        subprocess.run(["mount", "-o", "remount,size=16m", self.disk], check=True)

    def check_file(self, start, what):
        """`start` starts who writes disk/flow.nc, and goes on with it. Returns what the first one has said."""
        writer = self.write("flow", 8, "--bytes", "200000")
        first = start()
        self.wait_for_readers("flow", 1)
        self.step(writer, 8)
        _, err = self.told(first, 1)
        self.assertRegex(err, "No space left on device")
        self.assertIn(what, err)
        had = steps_in(os.path.join(self.disk, "flow.nc"))
        self.assertLess(had, 8)
        self.make_room()
        again = start()
        self.end(writer)
        self.told(again)
        self.assert_holds(os.path.join(self.disk, "flow.nc"), 8)

    def test_ends_a_record_which_goes_on_when_there_is_room(self):
        self.check_file(lambda: self.stream("record", "flow", "-o", "disk/flow.nc", "--append", "--as", "archive"), "--append")

    def test_at_the_first_step_leaves_nothing_behind(self):
        writer = self.write("flow", 2, "--bytes", "2000000")
        command = ["record", "flow", "-o", "disk/flow.nc", "--append", "--as", "archive"]
        record = self.stream(*command)
        self.wait_for_readers("flow", 1)
        self.step(writer, 2)
        self.assertIn("No space left on device", self.told(record, 1)[1])
        self.assertEqual(os.listdir(self.disk), [])
        self.make_room()
        self.end(writer)
        self.told(self.stream(*command))
        self.assert_holds(os.path.join(self.disk, "flow.nc"), 2)

    def test_ends_a_receiver_and_its_sender_which_go_on_when_there_is_room(self):
        writer = self.write("flow", 8, "--bytes", "200000")
        receive = ["receive", "-o", "disk/flow.nc", "--append", "--listen"]
        first = self.stream(*receive, "127.0.0.1:0")
        address = first.process.stdout.readline().strip()
        forward = ["forward", "flow", "--to", address, "--subscription", "link"]
        sender = self.stream(*forward)
        self.wait_for_readers("flow", 1)
        self.step(writer, 8)
        for job in (first, sender):
            self.assertRegex(self.told(job, 1)[1], "No space left on device.*--append")
        self.make_room()
        again = self.stream(*receive, address[len("tcp://"):])
        sender = self.stream(*forward)
        self.end(writer)
        self.told(sender)
        self.told(again)
        self.assert_holds(os.path.join(self.disk, "flow.nc"), 8)

    def test_of_a_servers_own_sink_is_tried_again(self):
        contact = self.path("own.contact")
        job = self.job([os.path.join(BUILD, "bin", "nessie-streams"), "--announce", "file:" + contact, "--log", "none", "--name", "own",
                        "--set", "streams.sinks=record:flow=" + os.path.join(self.disk, "flow.nc")])
        wait_until(lambda: os.path.exists(contact) or job.process.poll() is not None, "the contact file")
        self.env["NESSIE_STREAMS_AT"] = "file:" + contact
        writer = self.write("flow", 8, "--bytes", "200000")
        self.step(writer, 8)
        self.end(writer)
        self.assertIn("No space left on device", job.process.stderr.readline())
        self.make_room()
        wait_until(lambda: steps_in(os.path.join(self.disk, "flow.nc")) == 8, "all steps in the file")
        self.assert_holds(os.path.join(self.disk, "flow.nc"), 8)
        job.process.send_signal(signal.SIGTERM)
        self.told(job)


class NoReceiver:
    """Listens, and does with each connection what `serve` does; it ends with the test."""

    def __init__(self, case, serve):
        self.listener, self.connections = socket.create_server(("127.0.0.1", 0)), []
        self.address = "tcp://127.0.0.1:%d" % self.listener.getsockname()[1]
        case.addCleanup(self.close)
        threading.Thread(target=self.run, args=(serve,), daemon=True).start()

    def run(self, serve):
        try:
            while True:
                connection = self.listener.accept()[0]
                self.connections.append(connection)
                serve(connection)
        except OSError:
            pass

    def close(self):
        for each in (self.listener, *self.connections):
            each.close()


def say_garbage(connection):
    connection.recv(64)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


class NoReceivers(Streams):
    def test_of_them_takes_a_step_and_the_sender_says_so_in_time(self):
        """Whether they never answer, answer garbage, or close; the steps stay for the one who comes next."""
        writer = self.write("flow", 2)
        forward = ["forward", "flow", "--subscription", "link", "--to"]
        self.step(writer, 2)
        for serve, said in ((lambda connection: None, "says nothing"), (say_garbage, "."), (socket.socket.close, ".")):
            stranger = NoReceiver(self, serve)
            _, err = self.told(self.stream(*forward, stranger.address, "--timeout", "1"), 1)
            self.assertRegex(err, said)
            self.assertTrue(stranger.connections)
        self.end(writer)
        other = OtherReceiver()
        sender = self.stream(*forward, other.address)
        other.run()
        self.told(sender)
        self.assertEqual(sorted(other.images), [0, 1])

    def test_that_closes_after_each_step_gets_each_once(self):
        other = Impatient()
        writer = self.write("flow", 3)
        self.step(writer, 3)
        sender = self.stream("forward", "flow", "--to", other.address)
        self.wait_for_readers("flow", 1)
        self.end(writer)
        other.run()
        self.told(sender)
        self.assertEqual((other.seen, other.end), ([0, 1, 2], 3))


class Impatient(OtherReceiver):
    """Takes one step, or the end, over each connection."""

    def run(self):
        self.seen = []
        while self.end is None:
            with self.listener.accept()[0] as connection, connection.makefile("rb") as file:
                begin = file.read(20)
                self.checked(begin + file.read(struct.unpack(">4sIQI", begin)[3] + 4))
                magic, checksum, number, length = struct.unpack(">4sIQQ", self.checked(file.read(28)))
                assert crc32c(file.read(length)) == checksum or magic == b"OVER"
                self.seen += [number] if magic == b"STEP" else []
                self.end = number if magic == b"OVER" else None
                answer = struct.pack(">4sIQ", b"DONE", 0, number)
                connection.sendall(answer + struct.pack(">I", crc32c(answer)))


class WrongCredential(Streams):
    def assert_refused(self, *words):
        """At once: the deadline is a minute, and only the watchdog of this is less."""
        _, err = self.told(self.stream(*words, "--timeout", "60", env={"NESSIE_CREDENTIAL": WRONG}), 1)
        self.assertIn("credential", err)

    def test_is_told_at_once_and_harms_nobody(self):
        writer = self.write("flow", 2)
        self.step(writer)
        for words in (["list"], ["info", "flow"], ["tail", "flow"], ["record", "flow", "-o", "stranger.nc"],
                      ["forward", "flow", "--to", "tcp://127.0.0.1:1"]):
            with self.subTest(words):
                self.assert_refused(*words)
        self.assertFalse(os.path.exists(self.path("stranger.nc")))
        stranger = self.job([WRITER, "other", "1"], env={"NESSIE_CREDENTIAL": WRONG})
        self.assertIn("credential", self.told(stranger, 1)[1])
        self.step(writer)
        self.end(writer)

    def test_at_the_servers_to_which_is_forwarded_is_told_at_once(self):
        self.env["NESSIE_CREDENTIAL"] = WRONG
        there = self.serve("there")
        del self.env["NESSIE_CREDENTIAL"]
        writer = self.write("flow", 1)
        self.step(writer)
        self.assertIn("credential", self.told(self.stream("forward", "flow", "--to", there, "--timeout", "60"), 1)[1])
        self.end(writer)


if __name__ == "__main__":
    unittest.main()
