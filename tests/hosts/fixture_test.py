# SPDX-License-Identifier: BSD-3-Clause
"""The hosts that the tests of this folder have are what they say, and leave nothing behind."""
import os
import signal
import subprocess
import sys
import unittest

import hosts
from harness import MARK, ProcessTestCase, marked_processes, wait_until

WHY_NOT = hosts.why_not()
KILLED = """import hosts, sys, time
with hosts.Hosts(2, folder=sys.argv[1]) as two:
    two[0].run(["sh", "-c", "sleep 1000 >/dev/null 2>&1 &"])
    print("there", flush=True)
    time.sleep(1000)
"""


def name_spaces():
    """Those of networks that some process is in."""
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                found.add(os.readlink(f"/proc/{entry}/ns/net"))
            except OSError:
                continue
    return found


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Fixture(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.spaces = name_spaces()

    def make(self, count=2, **options):
        made = hosts.Hosts(count, folder=self.folder, env={MARK: self.mark}, **options)
        made.__enter__()
        self.addCleanup(made.__exit__)
        return made

    def test_hosts_differ_as_hosts_do(self):
        two = self.make()
        for host in two:
            self.assertEqual(host.run(["uname", "-n"]).stdout, host.name + "\n")
            self.assertEqual(host.run(["ls", "/dev/shm", two.login["TMPDIR"]]).stdout.split("\n")[1], "")
            host.run(["sh", "-c", f"echo {host.name} | tee /dev/shm/x $TMPDIR/x shared.{host.name}"])
        for host in two:
            self.assertEqual(host.run(["sh", "-c", "cat /dev/shm/x $TMPDIR/x shared.a shared.b"]).stdout.split(),
                             [host.name, host.name, "a", "b"])
            self.assertEqual(len(host.files("-type", "f")), 2)
            self.assertNotIn(str(os.getpid()), host.run(["ls", "/proc"]).stdout.split())

    def test_hosts_reach_each_other_and_nothing_else(self):
        two = self.make(networks=2)
        listen = "import socket; s = socket.create_server(('', 7000), family=socket.AF_INET6, dualstack_ipv6=True)\n" \
                 "while True: s.accept()[0].sendall(b'b')"
        self.job([*two["b"].enter(), sys.executable, "-c", listen], env=two.login)
        ask = "import socket, sys; print(socket.create_connection((sys.argv[1], 7000), 3).recv(1).decode())"
        for address in ["b", *two["b"].addresses]:
            wait_until(lambda: two["a"].run([sys.executable, "-c", ask, address]).stdout == "b\n", f"an answer at {address}", 20)
        self.assertNotEqual(two["a"].run(["ip", "route", "get", "192.0.2.1"]).returncode, 0)

    def test_a_command_has_its_input_its_output_and_its_exit_code(self):
        host = self.make(1)[0]
        done = host.run(["sh", "-c", "cat; echo $X >&2; exit 7"], env={"X": "error"}, input="text")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, "text", "error\n"))
        self.assertEqual(host.run(["sh", "-c", "kill -9 $$"]).returncode, 137)
        self.assertEqual(host.run(["no-such-program"]).returncode, 127)

    def test_a_host_that_is_lost_takes_its_processes_along(self):
        two = self.make()
        job = self.job([*two["b"].enter(), "sleep", "1000"], env=two.login)
        job.wait_for("sleep")
        two["b"].lose()
        self.assertEqual(job.finish()[0], 255)
        self.assertEqual(job.descendants("sleep"), [])

    def test_a_link_is_as_slow_as_wanted(self):
        rate = self.make(rate="100mbit")["a"].tc("qdisc", "show", "dev", "eth0")
        self.assertIn("rate 100Mbit", rate)

    def test_a_host_may_have_no_name_that_others_know(self):
        three = self.make(3, unresolved=["c"])
        self.assertEqual([host.run(["getent", "hosts", "c"]).returncode for host in three], [2, 2, 2])
        self.assertEqual([host.run(["getent", "hosts", "b"]).returncode for host in three], [0, 0, 0])

    def test_launchers_start_processes_on_each(self):
        two = self.make()
        for launcher in ("openmpi", "hydra"):
            with self.subTest(launcher=launcher):
                done = two["a"].run(two.mpiexec("a:1,b:2", "uname", "-n", launcher=launcher))
                self.assertEqual(sorted(done.stdout.split()), ["a", "b", "b"], done.stderr)

    def test_who_made_them_may_be_killed(self):
        env = {**os.environ, MARK: self.mark}
        maker = subprocess.Popen([sys.executable, "-c", KILLED, self.folder], env=env, stdout=subprocess.PIPE, text=True)
        self.assertEqual(maker.stdout.readline(), "there\n")
        self.assertEqual(len(name_spaces() - self.spaces), 3)
        self.assertTrue(any(process.name == "sleep" for process in marked_processes(self.mark)))
        os.kill(maker.pid, signal.SIGKILL)
        maker.communicate()
        wait_until(lambda: not marked_processes(self.mark), f"the end of {marked_processes(self.mark)}", 20)

    def tearDown(self):
        self.doCleanups()
        wait_until(lambda: not name_spaces() - self.spaces, "their name spaces to go", 20)


if __name__ == "__main__":
    unittest.main()
