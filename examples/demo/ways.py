# SPDX-License-Identifier: BSD-3-Clause
"""One program, natively and with Nessie, in each way in which jobs are launched: ./dev demo --way WAY.

Says what was typed, what the program's I/O took, and that the files are identical, byte for byte. The Slurm and the hosts are made for
it on this machine, of name spaces, which only root may, and end with it.
"""
import contextlib
import filecmp
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2] / "tests"
NOBODY = 65534
LIMIT_S = 120
IO = re.compile(r"\bio_s=([\d.]+)")


class WayError(Exception):
    """Why a way cannot be shown, in a sentence."""


class NotHere(WayError):
    """What it takes is not on this machine."""


class Here:
    """This machine. `staged`: the words before the program's launcher."""
    processes = 4

    def __init__(self, options, scratch, staged=()):
        self.nessie, self.scratch, self.words = str(options.build_dir.resolve() / "bin" / "nessie"), scratch, staged
        self.program = [str(options.build_dir.resolve() / "examples" / "reaction_diffusion"), "--steps", "60", "--interval", "20",
                        "--prefix", "out"]

    def launcher(self):
        return ["mpiexec", "--oversubscribe", "-n", str(self.processes)]

    def native(self):
        return [*self.launcher(), *self.program]

    def staged(self):
        return [self.nessie, *self.words, "--", *self.native()]

    def run(self, command, folder):
        """What the command printed."""
        done = subprocess.run(command, cwd=folder, env=self.environment(), capture_output=True, text=True, timeout=LIMIT_S,
                              check=False)
        if done.returncode != 0:
            raise WayError(f"exit code {done.returncode} from: {shlex.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def environment(self):
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
        return {**os.environ, **root}


class Standing(Here):
    """Servers that outlive jobs."""

    def staged(self):
        name = f"demo-{os.getpid()}"
        job = shlex.join([self.nessie, "attach", name, "--", *self.native()])
        return ["sh", "-c", f"{self.nessie} serve --name {name} && {job}; code=$?; {self.nessie} stop {name}; exit $code"]


class Batch(Here):
    """A job of a Slurm that is made for it."""
    processes = 2

    def __init__(self, options, scratch, stack):
        super().__init__(options, scratch, ["run"])
        cluster = fixture("cluster")
        if why_not := cluster.why_not():
            raise NotHere(why_not)
        self.cluster = stack.enter_context(cluster.Cluster(2))

    def launcher(self):
        return ["srun", "--mpi=pmix", "--ntasks", str(self.processes)]

    def run(self, command, folder):
        (folder / "job.sh").write_text(f"#!/bin/sh\n{shlex.join(command)}\n", encoding="utf-8")
        self.cluster.command("sbatch", "--wait", "--nodes=1", f"--ntasks={self.processes}", "--output=job.out", "job.sh",
                             cwd=folder, env={**self.environment(), **self.cluster.environment}, timeout=LIMIT_S)
        (folder / "job.sh").unlink()
        said = (folder / "job.out").read_text(encoding="utf-8")
        (folder / "job.out").unlink()
        return said


class TwoHosts(Here):
    """The program on one host, its server on another."""
    processes = 2

    def __init__(self, options, scratch, stack):
        super().__init__(options, scratch, ["run", "--place", "node"])
        hosts = fixture("hosts")
        if why_not := hosts.why_not():
            raise NotHere(why_not)
        scratch.chmod(0o755)
        self.hosts = stack.enter_context(hosts.Hosts(2, user=NOBODY))

    def on(self, where):
        words = self.hosts.mpiexec(where, *self.program)
        words[words.index("-n") + 1] = str(self.processes)
        return words

    def native(self):
        return self.on(f"a:{self.processes}")

    def staged(self):
        return [self.nessie, *self.words, "--", *self.on(f"a:{self.processes},b:1")]

    def run(self, command, folder):
        os.chown(folder, NOBODY, NOBODY)
        return super().run([*self.hosts[0].enter(), *command], folder)

    def environment(self):
        return self.hosts.login


WAYS = {"beside": "a server beside the program, on the same node",
        "embedded": "the server in a thread of the program's own processes",
        "mpmd": "program and server in one MPI job",
        "serve": "servers that outlive jobs, to which this one attaches",
        "slurm": "a batch job, on a Slurm of two nodes that is made for it",
        "hosts": "the program on one of two hosts, made of name spaces, and its server on the other"}


def make(way, options, scratch, stack):
    if way == "serve":
        return Standing(options, scratch)
    if way in ("slurm", "hosts"):
        return {"slurm": Batch, "hosts": TwoHosts}[way](options, scratch, stack)
    return Here(options, scratch, ["run"] if way == "beside" else ["run", f"--{way}"])


def fixture(module):
    """What the tests make machines with."""
    for folder in ("processes", "setups", "hosts", "slurm"):
        sys.path.insert(0, str(TESTS / folder))
    return __import__(module)


def compare(native, staged):
    names = sorted(path.name for path in native.iterdir())
    _, different, missing = filecmp.cmpfiles(native, staged, names, shallow=False)
    if not names or different or missing:
        raise WayError(f"the files differ: {different + missing}; please report this")
    return len(names)


def show(way, options, scratch):
    """Raises WayError, subprocess.TimeoutExpired or AssertionError, of the tests' machines."""
    os.environ["NESSIE_BUILD_DIR"] = str(options.build_dir.resolve())
    print(f"{way}: {WAYS[way]}", flush=True)
    with contextlib.ExitStack() as stack:
        place = make(way, options, scratch, stack)
        took, folders = {}, {}
        for how, command in (("native", place.native()), ("staged", place.staged())):
            folders[how] = scratch / f"{way}-{how}"
            folders[how].mkdir()
            said = place.run(command, folders[how])
            took[how] = float(IO.search(said)[1])
        if "staged " not in said:
            raise WayError(f"nothing was staged:\n{said}")
        files = compare(folders["native"], folders["staged"])
    print(f"  $ {shlex.join(command).replace(place.nessie, 'nessie')}")
    print("\n".join(f"  {line}" for line in said.splitlines() if line.startswith("nessie: staged")))
    print(f"  time in I/O: natively {took['native']:.3f} s, staged {took['staged']:.3f} s; "
          f"{files} files are identical, byte for byte", flush=True)


def show_all(options, scratch):
    for way in WAYS:
        try:
            show(way, options, scratch)
        except NotHere as error:
            print(f"  not here: {error}", flush=True)
