# SPDX-License-Identifier: BSD-3-Clause
"""What is forwarded, and received, over a link that is cut is what was written. Needs root."""
import contextlib
import os
import time
import unittest

from harness import BUILD, wait_until
from link import HOSTS, Link
from sinks_test import MEGABYTE, Streams, steps_in

SWEEP = "NESSIE_TEST_SWEEP" in os.environ


class OverLink(Link, Streams):
    """Writers and their server are on side 0; on side 1 is who gets the steps."""
    transport, side = "tcp", 0

    @contextlib.contextmanager
    def there(self):
        """What is started meanwhile runs on side 1."""
        self.side = 1
        try:
            yield
        finally:
            self.side = 0

    def job(self, command, env=None, **options):
        address = {f"NESSIE_NNTI_{self.transport.upper()}_ADDRESS": HOSTS[self.side]}
        return super().job([*self.enter(self.side), *command], env={**address, **(env or {})}, **options)

    def serve(self, name):
        contact = self.path(name + ".contact")
        job = self.job([os.path.join(BUILD, "bin", "nessie-streams"), "--listen", self.transport, "--name", name, "--memory", "256M",
                        "--announce", "file:" + contact])
        wait_until(lambda: os.path.exists(contact) or job.process.poll() is not None, "the contact file")
        self.servers.append(job)
        return "file:" + contact

    def write_with_cuts(self, writer, cuts_s, has_steps):
        """Two steps before, while and after the link is cut each time. Returns how many. `has_steps`: so many are there."""
        written = 0
        for cut_s in cuts_s:
            self.step(writer, 2)
            wait_until(lambda: has_steps(written + 1), "steps there")
            self.inside(0, "link", "set", "nts0", "down")
            self.step(writer, 2)
            time.sleep(cut_s)
            self.inside(0, "link", "set", "nts0", "up")
            self.step(writer, 2)
            written += 6
        self.end(writer)
        return written

    def check_servers(self, *cuts_s):
        with self.there():
            place = self.serve("there")
        writer = self.write("flow", 6 * len(cuts_s), "--bytes", str(4 * MEGABYTE))
        forward = self.stream("forward", "flow", "--to", place, "--append", "--subscription", "link")
        self.wait_for_readers("flow", 1)
        with self.there():
            record = self.stream("record", "flow", "-o", "flow.nc", "--at", place, "--as", "archive")
        steps = self.write_with_cuts(writer, cuts_s, lambda count: steps_in(self.path("flow.nc")) >= count)
        self.told(forward)
        self.told(record)
        self.assert_holds(self.path("flow.nc"), steps)

    def check_socket(self, *cuts_s):
        with self.there():
            receive = self.stream("receive", "-o", "flow.nc", "--listen", HOSTS[1] + ":0")
            address = receive.process.stdout.readline().strip()
        writer = self.write("flow", 6 * len(cuts_s), "--bytes", str(4 * MEGABYTE))
        forward = self.stream("forward", "flow", "--to", address)
        self.wait_for_readers("flow", 1)
        steps = self.write_with_cuts(writer, cuts_s, lambda count: steps_in(self.path("flow.nc")) >= count)
        self.told(forward)
        self.told(receive)
        self.assert_holds(self.path("flow.nc"), steps)


class ForwardOverTcp(OverLink):
    def test_to_servers_over_a_link_that_is_cut(self):
        self.check_servers(0.3, 1)

    def test_to_a_receiver_over_a_link_that_is_cut(self):
        self.check_socket(0.3, 1)

    def test_keeps_to_its_rate_also_after_a_cut(self):
        with self.there():
            place = self.serve("there")
        writer = self.write("flow", 4, "--bytes", str(MEGABYTE))
        self.step(writer, 4)
        begin = time.monotonic()
        forward = self.stream("forward", "flow", "--to", place, "--rate", "2M", "--steps", "4")
        time.sleep(0.2)   # somewhere in the first of them
        self.cut(0.5)
        up = time.monotonic()
        self.told(forward)
        before = max(up - begin - 0.5, 0)   # what may have gone before the cut
        self.assertGreater(time.monotonic() - up, 1.5 - before)   # 4 MiB, of which the last may go at once
        self.end(writer)

    @unittest.skipUnless(SWEEP, "in the sweep")
    def test_to_servers_over_a_link_that_is_cut_for_long(self):
        self.check_servers(3, 20)

    @unittest.skipUnless(SWEEP, "in the sweep")
    def test_to_a_receiver_over_a_link_that_is_cut_for_long(self):
        self.check_socket(3, 20)


@unittest.skipUnless(SWEEP, "in the sweep")
class ForwardOverOfi(OverLink):
    transport = "ofi"

    def test_to_servers_over_a_link_that_is_cut(self):
        self.check_servers(0.3, 3, 20)


if __name__ == "__main__":
    unittest.main()
