# SPDX-License-Identifier: BSD-3-Clause
"""A Slurm of one's own, on this machine, for tests: a controller and several nodes, each a host of tests/hosts. Nothing of
the machine's own Slurm is used, and nobody outside of the hosts' network, which ends with the cluster, can connect.
"""
import os
import re
import shutil
import tempfile

import hosts
from harness import wait_until

TOOLS = ("slurmctld", "slurmd", "srun", "sbatch", "munged")
CPUS = 4   # of each node, as Slurm is told: more than the machine may have
CONTROLLER = "control"
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"

SLURM_CONF = """
ClusterName=nessie
SlurmctldHost={controller}
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
TmpFS={scratch}
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

MUNGED = ["munged", "--force", "--foreground", "--key-file={folder}/munge.key", "--socket={folder}/munge.socket",
          "--pid-file={folder}/munge.pid", "--log-file={folder}/munge.log", "--seed-file={folder}/munge.seed",
          "--num-threads=2"]


def why_not():
    """Why there can be no cluster here; empty if there can be one."""
    missing = [tool for tool in TOOLS if not shutil.which(tool, path=PATH)]
    return f"{', '.join(missing)}: not installed (./dev deps)" if missing else hosts.why_not()


class Cluster:
    """node1 to nodeN. As a context, ends with it."""

    def __init__(self, nodes=2, kill_wait_s=5):
        self.folder = tempfile.mkdtemp(prefix="nslurm-", dir="/tmp")   # sockets' names are short
        os.chmod(self.folder, 0o755)
        self.names = [f"node{number + 1}" for number in range(nodes)]
        self.conf = os.path.join(self.folder, "slurm.conf")
        self.environment = {**os.environ, "SLURM_CONF": self.conf, "PATH": PATH}
        self.hosts = hosts.Hosts([CONTROLLER, *self.names], folder=self.folder)
        self.scratch = self.hosts.own_folders[0]   # each node has its own below this name
        try:
            self.hosts.__enter__()
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
        for name in ["state", *self.names, *(f"{name}/spool" for name in self.names)]:
            os.mkdir(os.path.join(self.folder, name))
        addresses = {host.name: host.addresses[0] for host in self.hosts}
        nodes = "\n".join(f"NodeName={name} NodeAddr={addresses[name]}" for name in self.names)
        self._write("slurm.conf", SLURM_CONF.format(
            folder=self.folder, scratch=self.scratch, controller=f"{CONTROLLER}({addresses[CONTROLLER]})", cpus=CPUS, nodes=nodes,
            kill_wait_s=kill_wait_s))
        self._write("munge.key", os.urandom(64).hex(), 0o400)

    def _start(self):
        self._start_daemon(CONTROLLER, [word.format(folder=self.folder) for word in MUNGED])
        wait_until(lambda: os.path.exists(os.path.join(self.folder, "munge.socket")), "munged", 30)
        self._start_daemon(CONTROLLER, ["slurmctld", "-D", "-c"])
        for name in self.names:
            self._start_daemon(name, ["slurmd", "-D", "-N", name])
        wait_until(lambda: self.idle() == len(self.names), "the nodes to be idle:\n" + self.folder, 30)

    def _start_daemon(self, name, command):
        """It lives as long as its host."""
        log = os.path.join(self.folder, f"{name}.{command[0]}.out")
        self.run_on(name, ["sh", "-c", '"$@" >"$0" 2>&1 </dev/null &', log, *command])

    def idle(self):
        """How many nodes are."""
        states = self.run_on(CONTROLLER, ["sinfo", "-h", "-N", "-o", "%t"]).stdout.split()
        return states.count("idle")

    def stop(self):
        self.hosts.__exit__()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- what tests do with it ------------------------------------------------------------------------------------------

    def run_on(self, name, command, **options):
        return self.hosts[name].run(command, **{"env": self.environment, "timeout": 60, "cwd": None, **options})

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
        return wait_until(known, lambda: f"job {number} to be {' or '.join(states)}: {self.job(number)}", deadline_s)

    def kill_slurmd(self, name):
        """The daemon only: the processes of its jobs go on."""
        with open(os.path.join(self.folder, name, "slurmd.pid"), encoding="ascii") as file:
            number = file.read().strip()
        self.run_on(name, ["kill", "-KILL", number])

    def private_files(self, name):
        """What is in the folders that the node has for itself."""
        return self.hosts[name].files()
