# SPDX-License-Identifier: BSD-3-Clause
"""nessie-directory and `nessie directory`: what a user sees of them."""
import json
import os
import signal
import stat
import unittest

from harness import BUILD, NESSIE, ProcessTestCase, read_file, wait_until

DAEMON = os.path.join(BUILD, "bin", "nessie-directory")
PEER = os.path.join(BUILD, "tests", "directory_test_peer")


class Directory(ProcessTestCase):
    def setUp(self):
        super().setUp()
        self.contact = self.path("directory.contact")
        self.env["NESSIE_DIRECTORY"] = "file:" + self.contact

    def start(self, **env):
        daemon = self.job([DAEMON, "--contact", self.contact, "--listen", "shm"], env=env)
        line = f"\npid = {daemon.process.pid}\n".encode()
        wait_until(lambda: os.path.exists(self.contact) and line in read_file(self.contact), "the contact file")
        return daemon

    def announce(self, name, lease_ms=3000):
        peer = self.job([PEER, "file:" + self.contact, name, str(lease_ms)])
        self.assertEqual(peer.process.stdout.readline(), "announced\n")
        return peer

    def directory(self, *arguments, **env):
        return self.run_command([NESSIE, "directory", *arguments], env=env)

    def names(self):
        code, out, err = self.directory("list", "--json")
        self.assertEqual(code, 0, err)
        return [each["name"] for each in json.loads(out)["instances"]]

    def end(self, daemon):
        daemon.process.send_signal(signal.SIGTERM)
        code, out, err = daemon.finish()
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, "^[a-z]+://.*\n$")

    def test_lists_what_there_is_and_ends_in_order(self):
        daemon = self.start()
        self.assertEqual(stat.S_IMODE(os.stat(self.contact).st_mode), 0o600)
        self.assertEqual(self.directory("list"), (0, "", ""))
        self.announce("job/a")
        self.announce("job/b")
        self.assertEqual(self.names(), ["job/a", "job/b"])
        code, out, err = self.directory("lookup", "job/a")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("job/a  program 0x00000007 version 1 provider 0  shm://", out)
        code, out, err = self.directory("lookup", "job/c")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("nobody has announced 'job/c'", err)
        self.end(daemon)
        self.assertFalse(os.path.exists(self.contact))

    def test_watch_prints_each_change(self):
        daemon = self.start()
        watch = self.job([NESSIE, "directory", "watch", "job/", "--changes", "2", "--json"])
        self.assertEqual(json.loads(watch.process.stdout.readline())["instances"], [])
        peer = self.announce("job/a", 3600000)
        self.announce("other")
        self.assertEqual(len(json.loads(watch.process.stdout.readline())["instances"]), 1)
        peer.process.kill()
        code, out, err = watch.finish()
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(json.loads(out)["instances"], [])
        self.end(daemon)

    def test_watch_says_when_the_directory_is_gone_and_when_it_is_back(self):
        daemon = self.start()
        watch = self.job([NESSIE, "directory", "watch", "--changes", "1", "--json"])
        self.assertEqual(json.loads(watch.process.stdout.readline())["instances"], [])
        daemon.process.kill()
        daemon.process.wait()
        self.assertRegex(watch.process.stderr.readline(),
                         r"^nessie directory: connection lost, trying again until \d\d:\d\d:\d\d: ")
        self.start()
        self.assertEqual(watch.process.stderr.readline(), "nessie directory: the directory is back\n")
        self.announce("job/a")
        code, out, err = watch.finish()
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(json.loads(out)["instances"][0]["name"], "job/a")

    def test_that_was_killed_and_started_anew_has_the_names_again(self):
        daemon = self.start()
        self.announce("a")
        daemon.process.kill()
        daemon.process.wait()
        code, out, err = self.directory("list", "--timeout", "1")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("directory.contact is stale", err)
        self.start()
        wait_until(lambda: self.names() == ["a"], "the name to come back")

    def test_says_what_is_wrong(self):
        code, _, err = self.directory("list", NESSIE_DIRECTORY="")
        self.assertEqual(code, 1)
        self.assertIn("set NESSIE_DIRECTORY", err)
        code, _, err = self.directory("list", "--timeout", "1")
        self.assertEqual(code, 1)
        self.assertIn(self.contact, err)
        for wrong in (["lookup"], ["list", "--timeout", "0"], ["watch", "--changes", "x"], []):
            self.assertEqual(self.directory(*wrong)[0], 2)
        for settings in ({"NESSIE_DIRECTORY_ENTRIES": "0"}, {"NESSIE_CREDENTIAL": "secret"}):
            code, _, err = self.run_command([DAEMON, "--contact", self.contact], env=settings)
            self.assertEqual(code, 2, err)
        self.assertEqual(self.run_command([DAEMON, "--contract", "x"])[0], 2)
        self.assertEqual(self.run_command([DAEMON, "--contact", self.path("none/d")])[0], 2)

    def test_refuses_who_has_another_credential(self):
        daemon = self.start(NESSIE_CREDENTIAL="1" * 64)
        code, _, err = self.directory("list", NESSIE_CREDENTIAL="2" * 64)
        self.assertEqual(code, 1)
        self.assertIn("credential", err)
        self.assertEqual(self.directory("list", NESSIE_CREDENTIAL="1" * 64), (0, "", ""))
        self.assertNotIn(b"1" * 64, read_file(self.contact))
        self.end(daemon)


if __name__ == "__main__":
    unittest.main()
