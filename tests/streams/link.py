# SPDX-License-Identifier: BSD-3-Clause
"""Two network namespaces, joined by a pair of virtual interfaces that can be cut. Needs root."""
import os
import subprocess
import time

from harness import wait_until

HOSTS = "10.78.0.1", "10.78.0.2"


class Link:
    """Of a test case: the two sides of a link, 0 and 1."""

    def setUp(self):
        self.spaces = [f"nts-{os.getpid()}-{side}" for side in "sc"]
        made = subprocess.run(["ip", "netns", "add", self.spaces[0]], capture_output=True, text=True)
        if made.returncode != 0:
            self.skipTest(f"needs network namespaces of its own, and may not make one: {made.stderr.strip()}")
        for space in self.spaces:
            self.addCleanup(subprocess.run, ["ip", "netns", "del", space], capture_output=True)
        self.ip("netns", "add", self.spaces[1])
        self.ip("link", "add", "nts0", "netns", self.spaces[0], "type", "veth", "peer", "name", "nts0", "netns", self.spaces[1])
        for side, address in enumerate(HOSTS):
            self.inside(side, "address", "add", address + "/24", "dev", "nts0")
            self.inside(side, "link", "set", "lo", "up")
            self.inside(side, "link", "set", "nts0", "up")
        for side in (0, 1):
            wait_until(lambda: self.is_up(side), "the link to come up")
        super().setUp()

    def is_up(self, side):
        shown = subprocess.run([*self.enter(side), "ip", "link", "show", "nts0"], capture_output=True, text=True, check=True)
        return "state UP" in shown.stdout

    def cut(self, seconds):
        self.inside(0, "link", "set", "nts0", "down")
        time.sleep(seconds)
        self.inside(0, "link", "set", "nts0", "up")

    def ip(self, *words):
        subprocess.run(["ip", *words], check=True)

    def enter(self, side):
        return ["nsenter", f"--net=/run/netns/{self.spaces[side]}"]

    def inside(self, side, *words):
        subprocess.run([*self.enter(side), "ip", *words], check=True)
