# SPDX-License-Identifier: BSD-3-Clause
"""Streams across two network namespaces, also over a link that is cut. Needs root."""
import os
import subprocess
import time
import unittest

from harness import wait_until
from peers import StreamsTestCase

SERVER, CLIENT = "10.78.0.1", "10.78.0.2"
LONG_CUT_S = 20 if os.environ.get("NESSIE_TEST_SWEEP") else 3   # longer than NSSI makes a connection again (1 s)


class Across:
    """What is true over each transport; `transport` is its name."""

    def setUp(self):
        super().setUp()
        self.spaces = [f"nts-{os.getpid()}-{side}" for side in "sc"]
        made = subprocess.run(["ip", "netns", "add", self.spaces[0]], capture_output=True, text=True)
        if made.returncode != 0:
            self.skipTest(f"needs network namespaces of its own, and may not make one: {made.stderr.strip()}")
        for space in self.spaces:
            self.addCleanup(subprocess.run, ["ip", "netns", "del", space], capture_output=True)
        self.ip("netns", "add", self.spaces[1])
        self.ip("link", "add", "nts0", "netns", self.spaces[0], "type", "veth", "peer", "name", "nts0", "netns", self.spaces[1])
        for side, address in enumerate((SERVER, CLIENT)):
            self.inside(side, "address", "add", address + "/24", "dev", "nts0")
            self.inside(side, "link", "set", "lo", "up")
            self.inside(side, "link", "set", "nts0", "up")

    def ip(self, *words):
        subprocess.run(["ip", *words], check=True)

    def enter(self, side):
        return ["nsenter", f"--net=/run/netns/{self.spaces[side]}"]

    def inside(self, side, *words):
        subprocess.run([*self.enter(side), "ip", *words], check=True)

    def address(self, side):
        return {f"NESSIE_NNTI_{self.transport.upper()}_ADDRESS": (SERVER, CLIENT)[side]}

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

    def test_a_link_that_is_cut_loses_nothing(self):
        if self.transport == "ofi" and not os.environ.get("NESSIE_TEST_SWEEP"):
            self.skipTest("not steady yet")
        server = self.serve()
        writer = self.peer(self.write, 1, 200, "--pause", 5, "--elements", 20_000)
        reader, near = self.peer(self.read, 1, "--as", "far"), self.peer(self.read, 0, "--as", "near")
        for cut_s in (0.3, LONG_CUT_S):
            before = len(reader.lines)
            wait_until(lambda: len(reader.lines) > before + 3, "some steps")
            self.inside(0, "link", "set", "nts0", "down")
            time.sleep(cut_s)
            self.inside(0, "link", "set", "nts0", "up")
        for each in (writer, reader, near):
            self.assertEqual(each.end(), 0, each.lines[-5:])
        for each in (reader, near):
            self.assert_saw(each, range(200))
        self.end_servers(server)


class OverTcp(Across, StreamsTestCase):
    transport = "tcp"


class OverOfi(Across, StreamsTestCase):
    transport = "ofi"


if __name__ == "__main__":
    unittest.main()
