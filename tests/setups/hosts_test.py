# SPDX-License-Identifier: BSD-3-Clause
"""Hosts whose names nobody resolves, with little or no network."""
import os
import shutil
import subprocess
import unittest

import setups
from harness import mpiexec

MAY_UNSHARE = shutil.which("unshare") and \
    subprocess.run(["unshare", "-n", "-u", "true"], capture_output=True, check=False).returncode == 0
LOOPBACK_UP = ("import fcntl,socket,struct; s=socket.socket(); "
               "fcntl.ioctl(s, 0x8914, struct.pack('16sh14x', b'lo', 0x49))")


@unittest.skipUnless(MAY_UNSHARE, "makes name spaces, which takes rights")
class Hosts(setups.SetupCase):
    def on_host(self, name, setup, command):
        script = f'{setup}; hostname {name}; exec "$@"'
        return ["unshare", "-n", "-u", "sh", "-c", script, "sh", *command]

    def compare_on(self, label, name, setup, launch):
        command = [*launch, "-n", "2", setups.program("writer"), "out.nc"]
        native = self.native(self.on_host(name, setup, command), label=f"{label}.native")
        for mode in ("caching", "direct"):
            staged = self.staged(mode, command, label=f"{label}.{mode}", before=self.on_host(name, setup, []))
            if native.code == 0:
                self.assert_same(native, staged)

    def test_long_names_that_nobody_resolves(self):
        loopback = f'/usr/bin/python3 -c "{LOOPBACK_UP}"'
        for length in (54, 64):   # Open MPI itself does not bear some lengths in between
            for number, launch in enumerate((["mpiexec", "--oversubscribe"], ["mpiexec", "--host", "localhost:4"])):
                with self.subTest(length=length, launch=launch):
                    self.compare_on(f"name{length}.{number}", ("node-" + "x" * 64)[:length], loopback, launch)

    @setups.sweep
    @unittest.skipUnless(shutil.which("ip"), "sets interfaces up with ip")
    def test_interfaces_of_all_sorts(self):
        def pair(number):
            return (f"ip link add d{number} type veth peer name e{number} && ip link set e{number} up && "
                    f"ip link set d{number} up && ip addr add fd0{number}::1/64 dev d{number} nodad")
        networks = {
            "ipv6": pair(0),
            "several": " && ".join(f"{pair(n)} && ip addr add 10.{n}.0.1/24 dev d{n}" for n in range(3)),
            "down": f"{pair(0)} && ip addr add 10.9.0.1/24 dev d0 && ip link set d0 down",
            "point-to-point": f"{pair(0)} && ip addr add 172.16.9.1 peer 172.16.9.2 dev d0 && ip route add default dev d0",
        }
        for label, setup in networks.items():
            with self.subTest(network=label):
                self.compare_on(label, "node", f"ip link set lo up && {setup}", ["mpiexec", "--oversubscribe"])

    def test_no_network_at_all(self):
        self.compare_on("none", "lonely", "true", ["mpiexec", "--oversubscribe"])


# Starts Open MPI's daemon here instead of on the host that is its first word that is no option, with an empty environment.
AGENT = r"""#!/bin/sh
while case "$1" in -*) true;; *) false;; esac; do shift; done
shift
exec env -i PATH="$PATH" HOME="$HOME" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 HWLOC_COMPONENTS=-gl sh -c "$*"
"""
WRITER = [setups.program("writer"), "out.nc"]
# Fails where FOO has not come.
WRITER_WITH_FOO = ["sh", "-c", 'test "$FOO" = 1 && exec "$@"', "sh", *WRITER]


class SeveralNodes(setups.SetupCase):
    """Open MPI carries to other nodes what it is told of: by the program's user, and by Nessie."""

    def setUp(self):
        super().setUp()
        with open(self.path("agent"), "w", encoding="utf-8") as file:
            file.write(AGENT)
        os.chmod(self.path("agent"), 0o700)
        with open(self.path("nodes"), "w", encoding="utf-8") as file:
            file.write("a\nb\n")

    def test_what_is_carried_there_is_the_users_and_ours(self):
        nodes = ["--host", "localhost,other", "--mca", "plm_rsh_agent", self.path("agent"), "-n", "2"]
        ways = {"x": ["-x", "FOO=1"], "list": ["--mca", "mca_base_env_list", "FOO=1"]}
        for label, words in ways.items():
            with self.subTest(way=label):
                self.compare_apart(["mpiexec", *words, *nodes, *WRITER_WITH_FOO], ["caching"])
        with self.subTest(way="environment"):
            env = {"OMPI_MCA_mca_base_env_list": "FOO=1"}
            self.compare_apart(["mpiexec", *nodes, *WRITER_WITH_FOO], ["caching"], env=env)

    def test_a_script_in_a_job_of_several_may_say_what_is_carried(self):
        script = 'exec mpiexec --oversubscribe -x FOO=1 -n 2 "$@"'
        self.compare(["sh", "-c", script, "sh", *WRITER_WITH_FOO], ["caching"], env={"PBS_NODEFILE": self.path("nodes")})

    def test_words_of_the_program_are_not_the_launchers(self):
        self.compare(mpiexec(1, "-x", "FOO=1", *WRITER_WITH_FOO, "1", "2", "-H", "5"), ["caching"])


if __name__ == "__main__":
    setups.main()
