# SPDX-License-Identifier: BSD-3-Clause
"""Streams across two network namespaces, also over a link that is cut. Needs root."""
import os
import random
import time
import unittest

from harness import wait_until
from link import HOSTS, Link
from peers import StreamsTestCase

SWEEP = "NESSIE_TEST_SWEEP" in os.environ
SEED = int(os.environ.get("NESSIE_TEST_SEED", time.time_ns() % 1_000_000))


class Across(Link):
    """What is true over each transport; `transport` is its name."""

    def address(self, side):
        return {f"NESSIE_NNTI_{self.transport.upper()}_ADDRESS": HOSTS[side]}

    def peer(self, start, side, *words):
        return start(*words, within=self.enter(side), env=self.address(side))

    def serve(self, *options, **more):
        return self.start_server(*options, listen=self.transport, within=self.enter(0), env=self.address(0), **more)

    def test_writers_and_readers_on_both_sides(self):
        servers = [self.serve(index=index, servers=2) for index in range(2)]
        writers = [self.peer(self.write, rank % 2, 20, "--rank", rank, "--size", 4, "--elements", 200_000) for rank in range(4)]
        readers = [self.peer(self.read, side, "--as", f"r{side}") for side in (0, 1)]
        for each in (*writers, *readers):
            self.assertEqual(each.end(), 0, each.lines[-5:])
        for reader in readers:
            self.assert_saw(reader, range(20))
        self.end_servers(servers[1], servers[0])

    def check_cuts(self, *cuts_s):
        """A writer and a reader beyond the link, and a reader on the server's side; they go on for as long as it takes."""
        server, stop = self.serve(), self.path("stop")
        writer = self.peer(self.write, 1, 1_000_000, "--await", 2, "--until", stop, "--pause", 5, "--elements", 20_000)
        readers = [self.peer(self.read, side, "--as", name) for side, name in ((1, "far"), (0, "near"))]
        for cut_s in (*cuts_s, 0):
            before = [len(reader.lines) for reader in readers]
            wait_until(lambda: all(len(each.lines) > then + 3 for each, then in zip(readers, before)),
                       lambda: "some steps:\n" + "\n".join(str(each.lines[-5:]) for each in (writer, *readers)))
            if cut_s > 0:
                self.cut(cut_s)
        with open(stop, "x"):
            pass
        for each in (writer, *readers):
            self.assertEqual(each.end(), 0, each.lines[-5:])
        for reader in readers:
            self.assert_saw(reader, range(len(writer.numbers("ended"))))
        self.end_servers(server)

    def test_a_link_that_is_cut_loses_nothing(self):
        self.check_cuts(0.3, 1.5)   # longer than NSSI makes a connection again (1 s)

    @unittest.skipUnless(SWEEP, "in the sweep")
    def test_a_link_that_is_cut_for_long_loses_nothing(self):
        self.check_cuts(20)

    @unittest.skipUnless(SWEEP, "in the sweep")
    def test_a_link_that_is_cut_for_longer_than_connections_are_made_again_loses_nothing(self):
        self.check_cuts(45)   # nnti.reconnect, nnti.peer_timeout: 30 s

    @unittest.skipUnless(SWEEP, "in the sweep")
    def test_a_link_that_is_cut_at_random_moments_loses_nothing(self):
        print(f"NESSIE_TEST_SEED={SEED}")
        draw = random.Random(SEED)
        self.check_cuts(*(draw.choice((0.01, 0.1, 1, 3, 6)) * draw.uniform(0.5, 1.5) for _ in range(15)))

    def test_nobody_waits_longer_than_his_deadline_while_the_link_is_down(self):
        server = self.serve()
        patience = ("--deadline", 1500)
        writer = self.peer(self.write, 1, 1_000_000, "--pause", 5, *patience)
        reader = self.peer(self.read, 1, "--as", "far", *patience)
        wait_until(lambda: len(reader.lines) > 3, "some steps")
        self.inside(0, "link", "set", "nts0", "down")
        late = self.peer(self.read, 1, "--as", "late", *patience)   # cannot even connect
        for each in (writer, reader, late):
            self.assertEqual(each.end(15), 1, each.lines[-5:])   # the link stays down: nothing else ends it
            self.assertRegex(each.lines[-1], "error: (TIMED_OUT|PEER_LOST|BUSY)")
        self.inside(0, "link", "set", "nts0", "up")
        self.end_servers(server)


class OverTcp(Across, StreamsTestCase):
    transport = "tcp"


class OverOfi(Across, StreamsTestCase):
    transport = "ofi"


if __name__ == "__main__":
    unittest.main()
