# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of jobs of several hosts share."""
import os
import unittest

import hosts
import setups
from harness import MARK, marked_processes, wait_until

WHY_NOT = hosts.why_not()
# Open MPI notices that a host is silent after five minutes, if it is not told otherwise.
NOTICE = {"OMPI_MCA_oob_tcp_keepalive_time": "2", "OMPI_MCA_oob_tcp_keepalive_intvl": "1",
          "OMPI_MCA_oob_tcp_keepalive_probes": "2", "NESSIE_STAGING_TIMEOUT": "5s"}
WRITER = setups.program("writer"), "out.nc"


@unittest.skipIf(WHY_NOT, WHY_NOT)
class HostsCase(setups.SetupCase):
    """Runs natively and staged from host a, and compares."""

    def make_hosts(self, count=2, env=None, **options):
        """The test's hosts, which end with it."""
        os.chmod(self.folder, 0o755)   # whoever is at home on the hosts passes
        self.hosts = hosts.Hosts(count, folder=self.folder, env={MARK: self.mark, **(env or {})}, **options)
        self.hosts.__enter__()
        self.addCleanup(self.hosts.__exit__)
        self.env = dict(self.hosts.login)
        return self.hosts

    def make(self, label):
        folder = super().make(label)
        os.chown(folder, self.hosts.user, self.hosts.user)
        return folder

    def run_in(self, label, command, **options):
        outcome = super().run_in(label, command, **options)
        if setups.CRASH_OF_OPEN_MPI in outcome.err:
            self.run_command(["rm", "-rf", outcome.folder])
            outcome = super().run_in(label, command, **options)
        return outcome

    def compare_on_hosts(self, where, modes=("caching",), command=WRITER, must_be_staged=True, **options):
        """Outcomes as compare(): native first. What was left behind is looked for on each host."""
        launch = self.hosts.mpiexec(where, *command)
        native = self.native([*self.hosts[0].enter(), *launch])
        self.assertEqual(native.code, 0, native.err)
        outcomes = [native]
        for mode in modes:
            outcomes.append(self.staged(mode, launch, before=self.hosts[0].enter(), **options))
            self.assert_same(native, outcomes[-1], must_be_staged)
        self.assert_nothing_left()
        return outcomes

    def assert_nothing_left(self, on=None):
        on = self.hosts if on is None else on

        def ours():
            return [process for process in marked_processes(self.mark) if "host.py" not in " ".join(process.words)]
        wait_until(lambda: not ours(), f"the end of {ours()}", 60)
        for host in on:
            wait_until(lambda: not host.files("-type", "f"), f"host {host.name} to be empty: {host.files()}", 30)


main = unittest.main
