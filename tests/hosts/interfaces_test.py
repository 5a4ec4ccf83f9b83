# SPDX-License-Identifier: BSD-3-Clause
"""Hosts of several networks, some of whose interfaces are down."""
import setups
from hosts_case import HostsCase, main


class Interfaces(HostsCase):
    def make_with_down(self, *down, **options):
        """Two hosts in two networks; `down`: "b eth0"."""
        self.make_hosts(networks=2, **options)
        for words in down:
            host, device = words.split()
            self.hosts[host].ip("link", "set", device, "down")

    @setups.sweep
    def test_the_first_is_down_where_the_servers_are(self):
        self.make_with_down("a eth0")
        self.compare_on_hosts("a:2,b:2")

    def test_the_first_has_no_cable_where_the_servers_are(self):
        self.make_with_down(env={f"OMPI_MCA_{layer}_tcp_if_include": "eth1" for layer in ("oob", "btl")})
        self.hosts.switch.ip("link", "set", "a0", "down")
        self.compare_on_hosts("a:2,b:2")

    def test_the_first_is_down_where_the_servers_are_not(self):
        """They listen at one address."""
        self.make_with_down("b eth0")
        outcomes = self.compare_on_hosts("a:2,b:2", must_be_staged=False)
        self.assertIn("cannot reach the staging servers", outcomes[1].err)

    @setups.sweep
    def test_the_second_is_down_somewhere(self):
        for down in (["a eth1"], ["b eth1"], ["a eth1", "b eth1"]):
            with self.subTest(down=down):
                self.make_with_down(*down)
                self.compare_on_hosts("a:2,b:2", setups.MODES)
                self.run_command(["rm", "-rf", *(self.path(label) for label in ("native", *setups.MODES))], cwd="/")
                self.hosts.__exit__()


if __name__ == "__main__":
    main()
