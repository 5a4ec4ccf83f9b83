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

    @setups.unsanitized("its options are not carried there")
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


# Leaves the ranks of its first word no way to the servers but the network; natively there are none.
FAR = r"""
case " $1 " in *" $OMPI_COMM_WORLD_RANK "*)
  NESSIE_SERVERS=$(printf %s "$NESSIE_SERVERS" | sed 's/shm:[^;| ]*[;|]*//g')
  test -z "$NESSIE_BOARDS" || test -n "$NESSIE_SERVERS" || exit 9
esac
shift; exec "$@"
"""


class SeveralWays(setups.SetupCase):
    """Processes of one program, some of which share memory with the servers, and some of which do not."""

    def compare_far(self, label, ranks, modes, before=(), folder=lambda label: None):
        command = mpiexec(4, "sh", "-c", FAR, "sh", ranks, setups.program("writer"), "out.nc")
        folder(f"{label}.native")
        native = self.native([*before, *command], label=f"{label}.native")
        self.assertEqual(native.code, 0, native.err)
        for mode in modes:
            folder(f"{label}.{mode}")
            staged = self.staged(mode, command, f"{label}.{mode}", before, env={"NESSIE_STAGING_LISTEN": "shm,ofi"})
            self.assert_same(native, staged)

    def test_some_ranks_by_shared_memory_and_some_by_the_network(self):
        self.compare_far("some", "1 3", setups.MODES)

    def test_the_rank_that_opens_by_the_network_and_the_others_by_shared_memory(self):
        """Its file is opened by name, which root's servers do not do."""
        if os.geteuid() != 0:
            return self.compare_far("first", "0", ["two"])
        self.let_others_in()
        return self.compare_far("first", "0", ["two"], [*setups.AS_NOBODY, "TMPDIR=/tmp"], self.folder_of_nobody)


if __name__ == "__main__":
    setups.main()
