# SPDX-License-Identifier: BSD-3-Clause
"""A network link that fails under load: it goes down, loses everything for a while, or its connections are killed.

Two processes, each in a network namespace of its own, joined by a pair of virtual interfaces. Needs root.
"""
import os
import select
import shutil
import subprocess
import sys
import time
import unittest

from harness import BUILD, ProcessTestCase, wait_until

PEER = os.path.join(BUILD, "tests", "link_peer")
SERVER, CLIENT = "10.77.0.1", "10.77.0.2"


class Line:
    """What a link_peer has said last: messages received and transfers made."""

    def __init__(self, job):
        self.job, self.said, self.last = job, [], (0, 0)

    def read(self):
        while select.select([self.job.process.stdout], [], [], 0)[0]:
            line = self.job.process.stdout.readline()
            if not line:
                break
            self.said.append(line)
            words = line.split()
            if len(words) == 2 and words[0].isdigit():
                self.last = (int(words[0]), int(words[1]))
        return self.last


class FailingLink:
    """What is true over each transport; `transport` is its name."""

    def setUp(self):
        super().setUp()
        self.spaces = [f"nt-{os.getpid()}-{side}" for side in "sc"]
        made = subprocess.run(["ip", "netns", "add", self.spaces[0]], capture_output=True, text=True)
        if made.returncode != 0:
            self.skipTest(f"needs network namespaces of its own, and may not make one: {made.stderr.strip()}")
        for space in self.spaces:
            self.addCleanup(subprocess.run, ["ip", "netns", "del", space], capture_output=True)
        self.ip("netns", "add", self.spaces[1])
        self.ip("link", "add", "nt0", "netns", self.spaces[0], "type", "veth", "peer", "name", "nt0", "netns",
                self.spaces[1])
        for side, address in enumerate((SERVER, CLIENT)):
            self.ip_inside(side, "address", "add", address + "/24", "dev", "nt0")
            self.ip_inside(side, "link", "set", "lo", "up")
            self.ip_inside(side, "link", "set", "nt0", "up")
        for side in (0, 1):
            wait_until(lambda: "state UP" in self.inside(side, "ip", "link", "show", "nt0").stdout, "the link to come up")

    def ip(self, *words):
        subprocess.run(["ip", *words], check=True)

    def enter(self, side):
        """Begins a command. Not `ip netns exec`, which mounts what it may not where the root is no mount point."""
        return ["nsenter", f"--net=/run/netns/{self.spaces[side]}"]

    def inside(self, side, *command, **options):
        return subprocess.run([*self.enter(side), *command], capture_output=True, text=True, **options)

    def ip_inside(self, side, *words):
        subprocess.run([*self.enter(side), "ip", *words], check=True)

    def peer(self, side, *words, **settings):
        address = f"NESSIE_NNTI_{self.transport.upper()}_ADDRESS"
        env = {address: (SERVER, CLIENT)[side], "NESSIE_LOG": "info", **settings}
        return self.job([*self.enter(side), PEER, *words], env=env, stdin=subprocess.PIPE, bufsize=1)

    def start(self, **settings):
        """Both sides, talking."""
        self.start_server(**settings)
        self.start_client(**settings)
        self.wait_for_traffic()

    def start_server(self, **settings):
        self.server = Line(self.peer(0, "serve", self.transport, **settings))
        self.url = self.server.job.process.stdout.readline().strip()
        self.assertTrue(self.url.startswith(self.transport + "://"), self.url)

    def start_client(self, **settings):
        self.client = Line(self.peer(1, "connect", self.url, **settings))

    def wait_for_traffic(self):
        """Until both have received much more, and transferred more, than before."""
        before = [line.read() for line in (self.server, self.client)]

        def grown():
            for line in (self.server, self.client):
                if line.job.process.poll() is not None:
                    self.fail(f"ended: {self.words()}")
            return all(line.read()[0] > old[0] + 500 and line.last[1] > old[1] + 10
                       for line, old in zip((self.server, self.client), before))
        try:
            wait_until(grown, "traffic in both directions", 45)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.words()}") from None

    def words(self):
        for line in (self.server, self.client):
            line.job.process.kill()
        return [line.job.process.communicate() for line in (self.server, self.client)]

    def finish(self):
        """Nothing was lost, doubled or changed. Returns what both logged."""
        self.client.job.process.stdin.close()
        self.client.job.process.stdin = None
        logs = []
        results = [line.job.finish() for line in (self.client, self.server)]
        counts = []
        for (code, out, err), line in zip(results, (self.client, self.server)):
            self.assertEqual(code, 0, out[-300:] + err)
            counts.append([int(word) for word in "".join(line.said + [out]).split("done")[1].split()])
            logs.append(err)
        self.assertEqual(counts[0][0], counts[1][1], "messages from the client")
        self.assertEqual(counts[1][0], counts[0][1], "messages from the server")
        return logs

    def assert_mended(self, logs):
        self.assertIn("was made again", logs[0] + logs[1])

    def filter(self, rule):
        """What becomes of packets that come to the server's side; None: they arrive."""
        rules = "flush ruleset\n"
        if rule:
            rules += f"table inet t {{\n chain i {{\n type filter hook input priority 0\n {rule}\n }}\n}}\n"
        done = self.inside(0, "nft", "-f", "-", input=rules)
        if done.returncode != 0:
            self.skipTest(f"this kernel does not filter packets: {done.stderr}")

    def kill_connections(self, *which):
        """Destroys TCP connections on the server's side."""
        done = self.inside(0, "ss", "-K", "-t", "state", "established", *which)
        if "answers" in done.stderr or done.returncode != 0:
            self.skipTest("this kernel does not let ss destroy sockets (CONFIG_INET_DIAG_DESTROY): " + done.stderr)

    # --- tests ---------------------------------------------------------------------------------------------------------

    def test_that_is_down_for_three_seconds_loses_nothing(self):
        self.start()
        self.ip_inside(0, "link", "set", "nt0", "down")
        time.sleep(3)   # the fault itself
        self.ip_inside(0, "link", "set", "nt0", "up")
        self.wait_for_traffic()
        self.finish()

    def test_that_is_down_when_a_process_starts_is_used_once_it_is_up(self):
        self.start_server()
        self.ip_inside(1, "link", "set", "nt0", "down")
        self.start_client()
        self.assertRegex(self.client.job.process.stdout.readline(), "waits: PEER_LOST: .*(down|cannot reach)")
        self.ip_inside(1, "link", "set", "nt0", "up")
        self.wait_for_traffic()
        self.finish()

    def test_that_is_given_up_while_it_is_down_is_made_again(self):
        self.start(NESSIE_NNTI_PEER_TIMEOUT="2s")
        self.ip_inside(0, "link", "set", "nt0", "down")
        time.sleep(6)
        self.ip_inside(0, "link", "set", "nt0", "up")
        self.wait_for_traffic()
        self.assert_mended(self.finish())

    @unittest.skipUnless(shutil.which("nft"), "nft is missing: apt-get install nftables")
    def test_that_drops_all_packets_for_some_seconds_loses_nothing(self):
        self.start(NESSIE_NNTI_PEER_TIMEOUT="2s")
        self.filter("drop")
        time.sleep(5)
        self.filter(None)
        self.wait_for_traffic()
        self.assert_mended(self.finish())

    @unittest.skipUnless(shutil.which("nft"), "nft is missing: apt-get install nftables")
    def test_whose_connections_are_reset_again_and_again_loses_nothing(self):
        self.start()
        for _ in range(5):
            self.filter("tcp flags & (syn|rst) == 0 reject with tcp reset")
            time.sleep(0.1)
            self.filter(None)
            self.wait_for_traffic()
        self.assert_mended(self.finish())

    def test_whose_connections_are_destroyed_again_and_again_loses_nothing(self):
        self.start()
        for _ in range(10):
            self.kill_connections()
            self.wait_for_traffic()
        self.assert_mended(self.finish())

    def test_one_of_whose_connections_is_destroyed_again_and_again_loses_nothing(self):
        self.start()
        for turn in range(10):
            listed = self.inside(0, "ss", "-H", "-n", "-t", "state", "established").stdout.split("\n")
            ports = sorted(int(line.split()[3].rsplit(":", 1)[1]) for line in listed if line)
            self.kill_connections("dport", "=", f":{ports[turn % len(ports)]}")
            self.wait_for_traffic()
        self.assert_mended(self.finish())

    def test_to_a_process_that_is_killed_is_found_lost_although_others_may_come_back(self):
        for victim, survivor in ((0, 1), (1, 0)):
            with self.subTest(killed=("server", "client")[victim]):
                self.start()
                lines = (self.server, self.client)
                lines[victim].job.process.kill()
                begun = time.monotonic()
                code, out, err = lines[survivor].job.finish()
                self.assertEqual(code, 3, out[-300:] + err)
                self.assertIn("PEER_LOST", err)
                print(f"\nfound after {time.monotonic() - begun:.2f} s", end=" ", file=sys.stderr)
                lines[victim].job.finish()
                self.assertNotIn("could not be restored", err, "only after nnti.reconnect")

    def test_that_stays_down_is_given_up_after_its_time(self):
        self.start(NESSIE_NNTI_PEER_TIMEOUT="2s", NESSIE_NNTI_RECONNECT="2s")
        self.ip_inside(0, "link", "set", "nt0", "down")
        for line in (self.server, self.client):
            code, out, err = line.job.finish()
            self.assertEqual(code, 3, out[-300:] + err)
            self.assertIn("nnti.reconnect", err)


class FailingLinkOfTcp(FailingLink, ProcessTestCase):
    transport = "tcp"


class FailingLinkOfOfi(FailingLink, ProcessTestCase):
    transport = "ofi"

    def test_whose_library_loses_its_connections_again_and_again_loses_nothing(self):
        self.start()
        bootstrap = self.url.split("?")[0].rsplit(":", 1)[1]
        for _ in range(10):
            self.kill_connections("sport", "!=", f":{bootstrap}")
            self.wait_for_traffic()
        self.assert_mended(self.finish())


if __name__ == "__main__":
    unittest.main()
