# SPDX-License-Identifier: BSD-3-Clause
"""Writers, readers and servers of streams are killed, stopped and started anew: nothing that was acknowledged is lost,
nothing is seen twice by who has ended it, and nobody waits for longer than he said."""
import os
import random
import time
import unittest

from peers import StreamsTestCase
from harness import wait_until

SWEEP = os.environ.get("NESSIE_TEST_SWEEP")   # set: more rounds
ROUNDS = 40 if SWEEP else 3
SEED = int(os.environ.get("NESSIE_TEST_SEED", "1"))


class Killed(StreamsTestCase):
    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)

    def pause(self, most_s):
        time.sleep(self.random.uniform(0, most_s))

    def test_server_of_logged_streams(self):
        for elements in (16, 200_000):
            with self.subTest(elements=elements):
                server = self.start_server()
                name = f"s{elements}"
                writer = self.write(60, "--logged", "--pause", 2, "--elements", elements, name=name)
                reader = self.read("--as", "all", name=name)
                reader.wait_for("step 2")
                for _ in range(ROUNDS):
                    self.pause(0.1)
                    server.kill()
                    server = self.start_server()
                    before = len(reader.lines)
                    wait_until(lambda: len(reader.lines) > before or reader.process.poll() is not None, "the next step")
                self.assertEqual(writer.end(), 0, writer.lines[-5:])
                self.assertEqual(reader.end(), 0, reader.lines[-5:])
                self.assert_saw(reader, range(60))
                self.end_servers(server)

    def test_one_of_two_servers_of_logged_streams(self):
        servers = [self.start_server(index=index, servers=2) for index in range(2)]
        writers = [self.write(80, "--logged", "--pause", 2, "--rank", rank, "--size", 4) for rank in range(4)]
        reader = self.read("--as", "all")
        reader.wait_for("step 2")
        for _ in range(ROUNDS):
            self.pause(0.1)
            index = self.random.randrange(2)
            servers[index].kill()
            servers[index] = self.start_server(index=index, servers=2)
            before = len(reader.lines)
            wait_until(lambda: len(reader.lines) > before or reader.process.poll() is not None, "the next step")
        for writer in writers:
            self.assertEqual(writer.end(), 0, writer.lines[-5:])
        self.assertEqual(reader.end(), 0, reader.lines[-5:])
        self.assert_saw(reader, range(80))
        self.end_servers(servers[1], servers[0])

    def test_reader_with_a_name_resumes_also_with_others(self):
        server = self.start_server()
        writer = self.write(200, "--pause", 1)
        seen = []
        for round_ in range(2 * ROUNDS):
            size = 1 + round_ % 3
            readers = [self.read("--as", "all", "--rank", rank, "--size", size) for rank in range(size)]
            for reader in readers:
                reader.wait_for("step|end")
            self.pause(0.05)
            for reader in readers:
                reader.kill()
            seen.append([reader.numbers("step") for reader in readers])
        last = self.read("--as", "all")
        self.assertEqual(last.end(), 0, last.lines[-5:])
        self.assertEqual(writer.end(), 0)
        seen.append([last.numbers("step")])
        before = -1   # the last step that all ranks had seen
        for ranks in seen:
            for numbers in ranks:
                if numbers:
                    self.assertEqual(numbers, list(range(numbers[0], numbers[-1] + 1)), "in order, none left out")
                    self.assertLessEqual(numbers[0], before + 1, "none is missed")
            before = max(before, min(numbers[-1] if numbers else before for numbers in ranks))
        self.assertEqual(before, 199)
        self.end_servers(server)

    def test_writers_that_are_killed_leave_whole_steps_and_others_append(self):
        server = self.start_server()
        reader = self.read("--as", "all")
        begin = 0
        for round_ in range(ROUNDS):
            size = 1 + round_ % 3
            options = ["--append"] if round_ else []
            writers = [self.write(10_000, *options, "--rank", rank, "--size", size) for rank in range(size)]
            for writer in writers:
                writer.wait_for("ended")
                self.assertEqual(writer.numbers("begins with"), [begin])
            self.pause(0.05)
            for writer in self.random.sample(writers, size):
                writer.kill()
            whole = min(writer.numbers("ended")[-1] for writer in writers)
            reader.wait_for(f"step {whole} ")
            begin = wait_until(lambda: self.complete(reader), "the end of what they left")
            self.assertGreaterEqual(begin, whole + 1)
        writer = self.write(begin + 5, "--append")
        self.assertEqual(writer.end(), 0, writer.lines)
        self.assertEqual(reader.end(), 0, reader.lines[-5:])
        self.assert_saw(reader, range(begin + 5))
        self.end_servers(server)

    @staticmethod
    def complete(reader):
        """How many steps the reader was told to be complete, when it was told that the writers have died."""
        if not reader.lines[-1].startswith("lost"):
            return None
        return int(reader.lines[-1].split("; ")[1].split()[0])

    def test_stopped_reader_holds_no_more_and_hears_of_it(self):
        server = self.start_server("--memory", "2M", "--set", "streams.keep=0", "--set", "streams.reader_timeout=1s",
                                   log=False)
        writer = self.write(60, "--elements", 32_768, "--deadline", 20_000, "--await", 1)
        reader = self.read("--pause", 20)
        reader.wait_for("step 1 ")
        reader.stop()
        self.assertEqual(writer.end(), 0, "it goes on when the reader has been silent for long")
        reader.go_on()
        self.assertEqual(reader.end(), 0, reader.lines[-5:])
        self.assertTrue(reader.has("lost: .*silent"), reader.lines)
        self.end_servers(server)

    def test_stopped_view_does_not_hold_up_the_writer(self):
        server = self.start_server("--memory", "2M", log=False)
        writer = self.write(200, "--elements", 32_768, "--pause", 1)
        reader = self.read("--view")
        reader.wait_for("step")
        reader.stop()
        self.assertEqual(writer.end(), 0, writer.lines[-3:])
        reader.go_on()
        self.assertEqual(reader.end(), 0, reader.lines[-5:])
        self.end_servers(server)

    def test_no_call_outlives_its_deadline_while_the_server_is_stopped(self):
        server = self.start_server()
        writer, reader = self.write(10_000, "--pause", 5, "--deadline", 1000), self.read("--deadline", 1000)
        reader.wait_for("step 3 ")
        server.stop()
        began = time.monotonic()
        for peer in (writer, reader):
            self.assertEqual(peer.end(20), 1, peer.lines[-3:])
            self.assertTrue(peer.has(r"error: (TIMED_OUT|PEER_LOST|BUSY)"), peer.lines[-3:])
        self.assertLess(time.monotonic() - began, 15)
        server.go_on()
        self.end_servers(server)


if __name__ == "__main__":
    unittest.main()
