# SPDX-License-Identifier: BSD-3-Clause
"""Coupled programs, each rank a process: core and edge, of which each reads what the other one writes. What they have read is
the same over shared memory and across two network namespaces; the latter needs root."""
import os
import subprocess
import unittest

from harness import BUILD
from link import HOSTS, Link
from peers import Lines, StreamsTestCase

SWEEP = "NESSIE_TEST_SWEEP" in os.environ
COUPLINGS = [(core, edge) for core in range(1, 9) for edge in range(1, 9)] if SWEEP else [(1, 1), (8, 8), (3, 5), (8, 1), (1, 8)]
NETWORKS = ("tcp", "ofi") if SWEEP else ("tcp",)
RANK = os.path.join(BUILD, "tests", "streams_coupling_rank")


class Rank(Lines):
    def __init__(self, case, program, number, within, env):
        super().__init__(case, [*within, RANK, program, str(number)], env, stdin=subprocess.PIPE)

    def begin(self, coupling):
        self.lines.clear()
        print(*coupling, file=self.process.stdin, flush=True)

    def checksum(self, coupling):
        """Of what it has read."""
        return self.wait_for("{} {}: ".format(*coupling)).split(": ", 1)[1]

    def end(self):
        self.process.stdin.close()
        self.process.stdin = None   # communicate() would flush it
        return super().end()


class Coupled(Link, StreamsTestCase):
    """Core is on side 0 of a link, edge on the other one, and so is every second server."""

    def side(self, transport, number):
        """How a process there is started."""
        if transport == "shm":
            return {"within": (), "env": {}}
        return {"within": self.enter(number), "env": {f"NESSIE_NNTI_{transport.upper()}_ADDRESS": HOSTS[number]}}

    def couple(self, ranks, coupling):
        """What each rank has read."""
        taking_part = [rank for program, size in zip(ranks, coupling) for rank in program[:size]]
        for rank in taking_part:
            rank.begin(coupling)
        return [rank.checksum(coupling) for rank in taking_part]

    def results(self, transport):
        """Of each number of servers and each coupling, what each rank has read."""
        ranks = [[Rank(self, program, number, **self.side(transport, side)) for number in range(8)]
                 for side, program in enumerate(("core", "edge"))]
        results = {}
        for count in (1, 2, 4):
            servers = [self.start_server(index=index, servers=count, listen=transport, log=False, **self.side(transport, index % 2))
                       for index in range(count)]
            results |= {(count, *coupling): self.couple(ranks, coupling) for coupling in COUPLINGS}
            self.end_servers(*reversed(servers))
        for rank in sum(ranks, []):
            self.assertEqual(rank.end(), 0, rank.lines[-5:])
        return results

    def test_what_is_read_is_the_same_over_memory_and_networks(self):
        over_memory = self.results("shm")
        for coupling, checksums in over_memory.items():
            for checksum in checksums:
                self.assertRegex(checksum, "^[0-9a-f]{8}$", coupling)
        for transport in NETWORKS:
            self.assertEqual(self.results(transport), over_memory)


if __name__ == "__main__":
    unittest.main()
