# SPDX-License-Identifier: BSD-3-Clause
"""A Slurm of one's own, on this machine, for tests: a controller and several nodes.

Each node has what sets machines apart: a host name, a network of its own with a cable to the controller, its own processes
(a PID name space), /dev/shm and temporary folder. The rest of the file system is common, as a cluster's shared one is. Nothing of
the machine's own Slurm is used, and nobody outside of the networks, which end with the cluster, can connect.

All processes of a node end with its first one; that one ends with `unshare`, and that with this process, however it dies.
"""
import os
import re
import shutil
import subprocess
import tempfile

from harness import wait_until

TOOLS = ("slurmctld", "slurmd", "srun", "sbatch", "munged", "unshare", "nsenter", "setpriv", "ip")
CPUS = 4   # of each node, as Slurm is told: more than the machine may have
NETWORK = "10.77.0"
CONTROLLER = "control"

SLURM_CONF = """
ClusterName=nessie
SlurmctldHost=control({network}.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n/slurmd.log
TmpFS={folder}/tmp
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=5
UnkillableStepTimeout=10
KillWait={kill_wait_s}
SchedulerType=sched/backfill   # without it there are no heterogeneous jobs
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
NodeName=DEFAULT CPUs={cpus} RealMemory=512
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=60 DefMemPerNode=100 State=UP OverSubscribe=NO
"""

# Runs as the first process of a name space. It takes over orphans, as a machine's first process does.
CONTROLLER_SCRIPT = """
set -e
hostname control
mount --bind {folder}/hosts /etc/hosts
ip link set lo up
ip address add {network}.254/32 dev lo
echo 1 >/proc/sys/net/ipv4/ip_forward
munged --force --foreground --key-file={folder}/munge.key --socket={folder}/munge.socket --pid-file={folder}/munge.pid \\
  --log-file={folder}/munge.log --seed-file={folder}/munge.seed --num-threads=2 &
until test -S {folder}/munge.socket; do sleep 0.02; done
slurmctld -D -c &
sleep infinity & wait
"""
NODE_SCRIPT = """
set -e
hostname {name}
mount --bind {folder}/hosts /etc/hosts
mount --bind {folder}/{name}/tmp {folder}/tmp
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
ip link set lo up
until ip link show eth0 >/dev/null 2>&1; do sleep 0.02; done
ip address add {address}/24 dev eth0
ip link set eth0 up
until test -S {folder}/munge.socket; do sleep 0.02; done
slurmd -D -N {name} &
sleep infinity & wait
"""
# The controller's end of a node's cable: it answers for all the other nodes.
CABLE = """
set -e
ip link add {name} type veth peer name eth0 netns {pid}
ip link set {name} up
ip route add {address}/32 dev {name}
echo 1 >/proc/sys/net/ipv4/conf/{name}/proxy_arp
echo 0 >/proc/sys/net/ipv4/neigh/{name}/proxy_delay
"""


def why_not():
    """Why there can be no cluster here; empty if there can be one."""
    missing = [tool for tool in TOOLS if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
    if missing:
        return f"{', '.join(missing)}: not installed (./dev deps)"
    try_out = subprocess.run(["unshare", "--fork", "--pid", "--net", "--uts", "--mount", "--mount-proc", "true"],
                             capture_output=True, text=True, check=False)
    return try_out.stderr.strip() and f"needs root that may make name spaces: {try_out.stderr.strip()}"


class Machine:
    """A set of name spaces, with the processes in them."""

    def __init__(self, script, environment, log):
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--fork", "--pid", "--kill-child", "--net", "--uts", "--mount",
             "--mount-proc", "bash", "-c", script], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.pid = wait_until(self._first_process, "a machine's first process", 10)

    def _first_process(self):
        try:
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
                children = file.read().split()
            # As long as it is `unshare` it has not all of its name spaces.
            return int(children[0]) if children and os.readlink(f"/proc/{children[0]}/exe").endswith("bash") else None
        except OSError:
            return None

    def inside(self, command):
        """The command that runs `command` on this machine, in the same folder."""
        return ["nsenter", f"--target={self.pid}", "--pid", "--net", "--uts", "--mount", "--wd=.", *command]

    def path(self, name):
        """A file of this machine, as it is seen from outside."""
        return f"/proc/{self.pid}/root{name}"

    def kill(self):
        """As if its power had gone."""
        self.process.kill()
        self.process.wait()
        wait_until(lambda: not self._runs(), "the end of a machine", 10)

    def _runs(self):
        """Once its first process is dead, though nobody has waited for that yet, so are all others."""
        try:
            return bool(os.readlink(f"/proc/{self.pid}/exe"))
        except OSError:
            return False


class Cluster:
    """node1 to nodeN. As a context, ends with it."""

    def __init__(self, nodes=2, kill_wait_s=5):
        self.folder = tempfile.mkdtemp(prefix="nslurm-", dir="/tmp")   # sockets' names are short
        os.chmod(self.folder, 0o755)
        self.names = [f"node{number + 1}" for number in range(nodes)]
        self.addresses = {name: f"{NETWORK}.{number + 1}" for number, name in enumerate(self.names)}
        self.conf = os.path.join(self.folder, "slurm.conf")
        self.scratch = os.path.join(self.folder, "tmp")   # each node has its own below this name
        self.machines = {}
        self.environment = {**os.environ, "SLURM_CONF": self.conf, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
        try:
            self._write_files(kill_wait_s)
            self._start()
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # --- its parts ------------------------------------------------------------------------------------------------------

    def _write(self, name, text, mode=0o644):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(os.path.join(self.folder, name), mode)

    def _write_files(self, kill_wait_s):
        for name in ["tmp", "state", *self.names, *(f"{name}/{sub}" for name in self.names for sub in ("tmp", "spool"))]:
            os.mkdir(os.path.join(self.folder, name))
        for name in ["tmp", *(f"{name}/tmp" for name in self.names)]:
            os.chmod(os.path.join(self.folder, name), 0o1777)
        nodes = "\n".join(f"NodeName={name} NodeAddr={address}" for name, address in self.addresses.items())
        self._write("slurm.conf", SLURM_CONF.format(folder=self.folder, network=NETWORK, cpus=CPUS, nodes=nodes,
                                                    kill_wait_s=kill_wait_s))
        hosts = {"localhost": "127.0.0.1", CONTROLLER: f"{NETWORK}.254", **self.addresses}
        self._write("hosts", "".join(f"{address} {name}\n" for name, address in hosts.items()))
        self._write("munge.key", os.urandom(64).hex(), 0o400)

    def _start(self):
        with open(os.path.join(self.folder, "machines.log"), "wb") as log:
            self.machines[CONTROLLER] = Machine(CONTROLLER_SCRIPT.format(folder=self.folder, network=NETWORK),
                                                self.environment, log)
            for name, address in self.addresses.items():
                script = NODE_SCRIPT.format(folder=self.folder, name=name, address=address)
                self.machines[name] = Machine(script, self.environment, log)
                self._lay_cable(name, address)
        wait_until(lambda: self.idle() == len(self.names), "the nodes to be idle:\n" + self.folder, 30)

    def _lay_cable(self, name, address):
        """From within the controller's network, but with this machine's numbers of processes."""
        script = CABLE.format(name=name, address=address, pid=self.machines[name].pid)
        subprocess.run(["nsenter", f"--target={self.machines[CONTROLLER].pid}", "--net", "bash", "-c", script],
                       env=self.environment, check=True)

    def idle(self):
        """How many nodes are."""
        states = self.run_on(CONTROLLER, ["sinfo", "-h", "-N", "-o", "%t"]).stdout.split()
        return states.count("idle")

    def stop(self):
        for machine in reversed(self.machines.values()):
            machine.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- what tests do with it ------------------------------------------------------------------------------------------

    def enter(self, name, command):
        return self.machines[name].inside(command)

    def run_on(self, name, command, **options):
        return subprocess.run(self.enter(name, command), **{
            "env": self.environment, "capture_output": True, "text": True, "timeout": 60, "check": False, **options})

    def command(self, *command, **options):
        """On the controller; returns what it printed."""
        done = self.run_on(CONTROLLER, command, **options)
        if done.returncode != 0:
            raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def submit(self, script, *options, cwd, env):
        """The number of the job."""
        return int(self.command("sbatch", "--parsable", *options, script, cwd=cwd, env={**self.environment, **env}))

    def job(self, number):
        """What Slurm knows of it: JobState, ExitCode, NodeList, and the like."""
        return dict(re.findall(r"(\S+?)=(\S*)", self.command("scontrol", "-o", "show", "job", str(number))))

    def wait_for_job(self, number, states=("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"), deadline_s=60):
        """Waits until it is in one of the states; returns what Slurm knows of it then."""
        def known():
            job = self.job(number)
            return job if job["JobState"] in states else None
        return wait_until(known, f"job {number} to be {' or '.join(states)}: {self.job(number)}", deadline_s)

    def kill_slurmd(self, name):
        """The daemon only: the processes of its jobs go on."""
        with open(os.path.join(self.folder, name, "slurmd.pid"), encoding="ascii") as file:
            number = file.read().strip()
        self.run_on(name, ["kill", "-KILL", number])

    def private_files(self, name):
        """What is in the folders that the node has for itself."""
        return [os.path.join(base, file) for folder in ("/dev/shm", self.scratch)
                for base, folders, files in os.walk(self.machines[name].path(folder)) for file in folders + files]
