# SPDX-License-Identifier: BSD-3-Clause
"""All staging servers die for good while a program runs: what lost nothing goes on natively, the rest is told."""
import os
import signal

import setups
from harness import mpiexec, read_file, wait_until

WHERE = ("begun", "defining", "defined", "synced", "closed", "opened")


class Unserved(setups.SetupCase):
    def setUp(self):
        super().setUp()
        self.let_go(self.make("native"))

    def let_go(self, folder):
        with open(os.path.join(folder, "go"), "w", encoding="utf-8"):
            pass

    def command(self, where):
        return mpiexec(2, setups.program("unserved"), where)

    def without_servers(self, where):
        """Its servers die where the program pauses."""
        folder = self.make(where)
        job = self.job([*setups.nessie_run("two"), *self.command(where)], cwd=folder,
                       env={"NESSIE_CLOSE": "durable", "NESSIE_STAGING_TIMEOUT": "4s"})
        wait_until(lambda: os.path.exists(os.path.join(folder, "there")), "the pause")
        servers = job.wait_for("nessied", 2)
        for server in servers:
            os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: not job.descendants("nessied"), "the servers' end")
        self.let_go(folder)
        return setups.Outcome(folder, *job.finish())

    def assert_same_file(self, name, native, staged):
        pair = [read_file(os.path.join(outcome.folder, name)) for outcome in (native, staged)]
        self.assertTrue(pair[0] == pair[1], f"{name} differs:\n{staged.err}")

    def check(self, where):
        native = self.native(self.command(where))
        staged = self.without_servers(where)
        self.assertEqual(native.out, staged.out, staged.err)
        self.assertIn("the program ended with 0", staged.err)
        self.assertEqual(staged.code, 0, staged.err)
        for name in ("a.nc", "b.nc"):
            self.assert_same_file(name, native, staged)
        if where != "begun":   # when nobody has spoken to them
            self.assertEqual(staged.err.count("all staging servers have died"), 1, staged.err)
        self.assertNotIn("it is not known whether its data are in the file", staged.err)

    def test_what_has_lost_nothing_goes_on_natively(self):
        for where in WHERE:
            with self.subTest(where=where):
                self.check(where)
        self.assert_nothing_left()

    def test_what_was_not_in_the_file_is_told_and_what_follows_is_native(self):
        native = self.native(self.command("unsynced"))
        lost = self.without_servers("unsynced")
        self.assertEqual(lost.code, 74, lost.out + lost.err)
        self.assertNotEqual(lost.out, native.out, "the program was told")
        self.assertIn("a.nc", lost.err)
        self.assert_same_file("b.nc", native, lost)
        self.assert_nothing_left()


if __name__ == "__main__":
    setups.main()
