# SPDX-License-Identifier: BSD-3-Clause
"""`nessie run` on host a, whose program has processes on other hosts as well."""
import setups
from harness import CHECKPOINT
from hosts_case import HostsCase, main

NOBODY = setups.NOBODY


class Run(HostsCase):
    def test_ranks_on_both_hosts_are_staged(self):
        self.make_hosts()
        self.compare_on_hosts("a:2,b:2", setups.MODES)

    def test_so_are_those_of_a_user_whose_first_rank_is_on_another_host(self):
        """His files are opened by name."""
        self.make_hosts(user=NOBODY)
        self.compare_on_hosts("b:2,a:2", ["caching", "direct"])

    def test_servers_in_processes_on_both_hosts(self):
        self.make_hosts(user=NOBODY)
        self.compare_on_hosts("a:2,b:2", flags=["--embedded", "--servers", "2"])

    def test_with_ipv6_only(self):
        self.make_hosts(ipv4=False)
        self.compare_on_hosts("a:2,b:2")

    def test_names_that_nobody_resolves(self):
        self.make_hosts(unresolved=["a", "b"])
        self.compare_on_hosts("a:2,b:2")

    @setups.sweep
    def test_wherever_the_ranks_are(self):
        for user in (0, NOBODY):
            for where in ("b:3", "b:1,c:2,a:1", "c:2,b:2", "a:1,b:1,c:1"):
                with self.subTest(user=user, where=where):
                    self.make_hosts(3, user=user)
                    self.compare_on_hosts(where, setups.MODES, must_be_staged=False)
                    self.run_command(["rm", "-rf", *(self.path(label) for label in ("native", *setups.MODES))], cwd="/")
                    self.hosts.__exit__()

    @setups.sweep
    def test_a_program_of_several_files(self):
        self.make_hosts(user=NOBODY)
        program = [CHECKPOINT, "--grid", "24,20,16", "--steps", "4", "--prefix", "s3d"]
        command = ["sh", "-c", 'exec "$@" >/dev/null', "sh", *program]   # it prints how long things take
        for outcome in self.compare_on_hosts("a:3,b:3", setups.MODES, command)[1:]:
            self.assertIn("s3d.0004.nc", outcome.err)

    @setups.sweep
    def test_over_a_slow_link(self):
        self.make_hosts(rate="80mbit")
        self.compare_on_hosts("a:2,b:2", setups.MODES, [setups.program("writer"), "out.nc", "1", "3"])

    @setups.sweep
    def test_each_transport_over_the_network(self):
        for listen in ("shm,ofi", "shm,tcp", "shm,ucx", "tcp"):
            with self.subTest(listen=listen):
                self.make_hosts(user=NOBODY, env={"NESSIE_STAGING_LISTEN": listen})
                self.compare_on_hosts("a:2,b:2")
                self.run_command(["rm", "-rf", self.path("native"), self.path("caching")], cwd="/")
                self.hosts.__exit__()


if __name__ == "__main__":
    main()
