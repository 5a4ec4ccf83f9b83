# SPDX-License-Identifier: BSD-3-Clause
"""Several hosts on this machine, for tests; needs root.

A host is a set of name spaces: network, PIDs, mounts, IPC and its name. It has its own processes, its own /dev/shm, its
own folders for temporary files and for runs, its own /etc/hosts; all other files it shares, as on a cluster. Hosts are joined by bridges
that stand in a name space of their own, and reach nothing else. Everything ends with the process that made it, however
that ends: name spaces are held by each host's first process (host.py) only, and that ends with its stdin.
"""
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

from harness import MARK, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
NAME_SPACES = ["--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--mount-proc"]
LOGIN = ("PATH", "HOME", "LC_ALL", MARK, "HWLOC_COMPONENTS", "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS",
         "UCX_MEM_EVENTS", "UCX_MEM_MMAP_HOOK_MODE", "IPATH_NO_BACKTRACE", "HFI_NO_BACKTRACE", "OMPI_MCA_rmaps_base_oversubscribe")


def why_not():
    """Why there can be no hosts on this machine; empty if there can."""
    if os.geteuid() != 0:
        return "makes name spaces, which only root may"
    lacking = [tool for tool in ("unshare", "ip", "mount", "tc") if not shutil.which(tool)]
    if lacking:
        return f"there is no {lacking[0]}"
    words = ["unshare", *NAME_SPACES, "ip", "link", "add", "name", "one", "type", "veth", "peer", "name",
             "other"]
    tried = subprocess.run(words, capture_output=True, text=True, check=False)
    return tried.stderr.strip()


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


class Space:
    """A host's name spaces, or those of the bridges, held by a process."""

    def __init__(self, description):
        self.holder = subprocess.Popen(["unshare", *NAME_SPACES, "--kill-child", sys.executable, "-I",
                                        os.path.join(HERE, "host.py"), json.dumps(description)],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        if self.holder.stdout.readline() != "ready\n":
            raise AssertionError(f"host {description['name']} did not start")

    @property
    def pid(self):
        return self.holder.pid

    def ip(self, *words):
        return run("nsenter", f"--net=/proc/{self.pid}/ns/net", "ip", *words)

    def tc(self, *words):
        return run("nsenter", f"--net=/proc/{self.pid}/ns/net", "tc", *words)

    def end(self):
        """Returns when all of its processes have ended."""
        self.holder.kill()   # --kill-child: its first process, and with that all others
        self.holder.communicate()


class Host(Space):
    def __init__(self, hosts, name, description):
        super().__init__({**description, "name": name, "door": os.path.join(hosts.doors, name)})
        self.hosts, self.name = hosts, name
        self.addresses = []

    def enter(self):
        """The words before a command that is to run on this host, with the environment and the folder that it is given."""
        return [self.hosts.agent, "--enter", os.path.join(self.hosts.doors, self.name)]

    def run(self, command, env=None, **options):
        """subprocess.run() on this host, with the environment of a login there and `env`."""
        options = {"capture_output": True, "text": True, "timeout": 90, "cwd": self.hosts.folder, **options}
        return subprocess.run([*self.enter(), *command], env={**self.hosts.login, **(env or {})}, check=False, **options)

    def files(self, *which):
        """What lies in the folders that are its own; `which`: conditions, as find has them."""
        return self.run(["find", *self.hosts.own_folders, "-mindepth", "1", *which]).stdout.split()

    def set_cables(self, state):
        for network in range(self.hosts.networks):
            self.hosts.switch.ip("link", "set", f"{self.name}{network}", state)

    def cut_off(self):
        """Takes the cables out: nothing that it sends arrives any more, and nobody is told."""
        self.set_cables("down")

    def join_again(self):
        self.set_cables("up")

    def lose(self):
        """As if its power had gone."""
        self.cut_off()
        self.end()


class Hosts(collections.abc.Sequence):
    """Hosts; each is found by its number and its name.

    names: how they are called; or how many there are, called a, b, c, …
    networks: how many join them, each with an interface (eth0, eth1, …) and addresses of its own.
    ipv4: False for IPv6 only.
    rate: what each host may send over each network, as tc writes it: "100mbit".
    unresolved: hosts whose names no host resolves.
    user: whose logins they are, by number; root's without.
    folder: where files may lie that all hosts share; one of its own without. env: more for the environment of a login.
    """

    def __init__(self, names, networks=1, ipv4=True, rate=None, unresolved=(), user=0, folder=None, env=None):
        self.names = [chr(ord("a") + number) for number in range(names)] if isinstance(names, int) else list(names)
        self.networks, self.ipv4, self.rate, self.unresolved, self.user = networks, ipv4, rate, unresolved, user
        self.folder = folder or tempfile.mkdtemp(prefix="nt-", dir="/tmp")
        self.removed = None if folder else self.folder
        self.base = tempfile.mkdtemp(prefix="hosts-", dir=self.folder)
        self.doors, self.agent = os.path.join(self.base, "doors"), os.path.join(self.base, "agent.py")
        self.own_folders = [os.path.join(self.base, "tmp"), os.path.join(self.base, "run"), "/dev/shm"]
        self.login = {name: os.environ[name] for name in LOGIN if name in os.environ}
        self.login |= {"TMPDIR": self.own_folders[0], "XDG_RUNTIME_DIR": self.own_folders[1],
                       "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **(env or {})}
        self.spaces = []

    # --- beginning and end ---------------------------------------------------------------------------------------------

    def __enter__(self):
        try:
            self.make_files()
            self.switch = self.add(Space({"name": "switch", "own_folders": [], "login": {}, "user": 0,
                                          "door": os.path.join(self.doors, "switch")}))
            description = {"own_folders": self.own_folders, "names_file": os.path.join(self.base, "names"),
                           "login": self.login, "user": self.user}
            self.hosts = [self.add(Host(self, name, description)) for name in self.names]
            for network in range(self.networks):
                self.join(network)
            self.await_links()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for space in self.spaces:
            space.end()
        shutil.rmtree(self.removed or self.base, ignore_errors=True)

    def add(self, space):
        self.spaces.append(space)
        return space

    def make_files(self):
        for folder in (self.doors, *self.own_folders[:2]):
            os.mkdir(folder, 0o700)
            os.chown(folder, self.user, self.user)
        os.chmod(self.base, 0o755)
        if self.removed:
            os.chown(self.folder, self.user, self.user)
        shutil.copy(os.path.join(HERE, "agent.py"), self.agent)
        os.chmod(self.agent, 0o755)
        lines = ["127.0.0.1 localhost", "::1 localhost"]
        lines += [f"{address} {name}" for number, name in enumerate(self.names) if name not in self.unresolved
                  for network in range(self.networks) for address in self.addresses(network, number)]
        with open(os.path.join(self.base, "names"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def addresses(self, network, number):
        """A host's addresses in a network, without their prefixes."""
        return ([f"10.88.{network}.{number + 1}"] if self.ipv4 else []) + [f"fd88:{network}::{number + 1}"]

    # --- networks ------------------------------------------------------------------------------------------------------

    def join(self, network):
        bridge, device = f"bridge{network}", f"eth{network}"
        self.switch.ip("link", "add", bridge, "type", "bridge")
        self.switch.ip("link", "set", bridge, "up")
        for number, host in enumerate(self.hosts):
            port = f"{host.name}{network}"
            run("ip", "link", "add", "name", device, "netns", str(host.pid), "type", "veth", "peer", "name", port, "netns",
                str(self.switch.pid))
            self.switch.ip("link", "set", port, "master", bridge, "up")
            for address in self.addresses(network, number):
                flags = [f"{address}/64", "nodad"] if ":" in address else [f"{address}/24"]
                host.ip("address", "add", *flags, "dev", device)
                host.addresses.append(address)
            host.ip("link", "set", device, "up")
            if self.rate:
                host.tc("qdisc", "add", "dev", device, "root", "tbf", "rate", self.rate, "burst", "256kb", "latency", "100ms")

    def await_links(self):
        def forward():
            return self.switch.ip("-o", "link", "show", "type", "veth").count("state UP") == self.networks * len(self.hosts)
        wait_until(forward, "the hosts' links", 20)

    # --- use -----------------------------------------------------------------------------------------------------------

    def __len__(self):
        return len(self.names)

    def __getitem__(self, which):
        return self.hosts[self.names.index(which) if isinstance(which, str) else which]

    def mpiexec(self, where, *command, launcher="openmpi"):
        """The words that start a process in each slot of `where`: "a:4,b:4". launcher: openmpi or hydra."""
        slots = sum(int(word.partition(":")[2] or 1) for word in where.split(","))
        if launcher == "hydra":
            return ["mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", self.agent, "-hosts", where, "-n", str(slots), *command]
        return ["mpiexec.openmpi", "--oversubscribe", "--host", where, "--mca", "plm_rsh_agent", self.agent, "-n", str(slots),
                *command]
