# SPDX-License-Identifier: BSD-3-Clause
"""What the tests below Slurm share: a cluster for each class of tests, and batch jobs on it."""
import filecmp
import os
import re
import shlex

from cluster import Cluster, why_not
from harness import CHECKPOINT, NESSIE, ProcessTestCase, marked_processes, read_file, wait_until
from setups import CRASH_OF_OPEN_MPI, NOBODY, SWEEP, program, sweep  # noqa: F401

LAUNCHERS = {"mpiexec": ["mpiexec"], "srun": ["srun", "--mpi=pmix"]}   # each takes the number of processes from the job
WRITER = [program("writer"), "out.nc"]
# run FOLDER COMMAND: runs it in a new folder, and keeps there what can be seen of it; once more if Open MPI crashed.
PRELUDE = rf"""#!/bin/bash
try() {{
  local folder=$1
  shift
  mkdir "$folder"
  (cd "$folder" && "$@" >../"$folder.out" 2>../"$folder.err" </dev/null; echo $? >../"$folder.code")
}}
run() {{
  try "$@"
  if grep -q '{CRASH_OF_OPEN_MPI}' "$1.err"; then
    rm -r "$1"
    srun --ntasks-per-node=1 --ntasks="$SLURM_JOB_NUM_NODES" {shlex.quote(NESSIE)} clean
    try "$@"
  fi
}}
"""


def line(label, *command):
    """Of a script: what PRELUDE's run() does."""
    return shlex.join(["run", label, *command]) + "\n"


class Batch:
    """A job that was submitted."""

    def __init__(self, case, number):
        self.case, self.number = case, number

    def wait_until_it_runs(self):
        self.case.cluster.wait_for_job(self.number, ("RUNNING",))

    def finish(self, deadline_s=60):
        """What Slurm knows of it at its end; what its script printed is in .out by then."""
        try:
            job = self.case.cluster.wait_for_job(self.number, deadline_s=deadline_s)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.case.what_there_is()}") from None
        wait_until(lambda: not self.case.has_processes(), "the end of the job's processes", deadline_s)
        return job

    @property
    def out(self):
        return read_file(self.case.path(f"{self.number}.out")).decode(errors="replace")

    def cancel(self, *options):
        self.case.cluster.command("scancel", *options, str(self.number))


class SlurmCase(ProcessTestCase):
    """Each test gets a folder that all nodes see; what a node has for itself must be empty at its end."""
    nodes = 2
    user = 0   # whose jobs they are

    @classmethod
    def setUpClass(cls):
        reason = why_not()
        if reason:
            cls.skipTest(cls, reason)
        cls.cluster = Cluster(cls.nodes)
        cls.addClassCleanup(cls.cluster.stop)

    def setUp(self):
        super().setUp()
        if SWEEP != getattr(getattr(self, self._testMethodName), "is_sweep", False):
            self.skipTest("runs in ./dev test-all" if not SWEEP else "runs in ./dev test")
        self.env["TMPDIR"] = self.cluster.scratch
        self.env["OMPI_MCA_mpi_yield_when_idle"] = "1"   # Slurm has been told of more processors than there are
        del self.env["XDG_RUNTIME_DIR"]
        os.chmod(self.folder, 0o755)
        os.chown(self.folder, self.user, self.user)
        self.addCleanup(self.kill_jobs)

    def kill_jobs(self):
        self.cluster.run_on("control", ["scancel", f"--user={self.user}", "--signal=KILL", "--full"])

    def submit(self, body, *options, nodes=1, tasks=2, env=None):
        """A job with this script, which finds run() there."""
        with open(self.path("job.sh"), "w", encoding="utf-8") as file:
            file.write(PRELUDE + body)
        return Batch(self, self.cluster.submit(
            "job.sh", f"--nodes={nodes}", f"--ntasks={tasks}", "--output=%j.out", f"--uid={self.user}",
            f"--gid={self.user}", *options, cwd=self.folder,
            env={**self.env, **(env or {})}))

    def has_processes(self):
        return bool(marked_processes(self.mark))

    def what_there_is(self):
        """Of a job that has not ended: what its processes do, and what was printed."""
        doing = (f"{process.pid} {shlex.join(process.words)}: {read_file(f'/proc/{process.pid}/wchan').decode()}"
                 for process in marked_processes(self.mark) if os.path.exists(f"/proc/{process.pid}"))
        names = (name for name in sorted(os.listdir(self.folder)) if name.endswith((".out", ".err", ".code")))
        printed = (f"{name}: {read_file(self.path(name)).decode(errors='replace')}" for name in names)
        return "\n".join((*doing, *printed))

    def code(self, label):
        return int(read_file(self.path(label + ".code")))

    def text(self, label, which="err"):
        return read_file(self.path(f"{label}.{which}")).decode(errors="replace")

    def lines(self, label):
        """What its processes printed, in no order of theirs."""
        return sorted(self.text(label, "out").splitlines())

    def assert_same(self, native, staged):
        said = self.text(staged)
        self.assertEqual((self.code(staged), self.lines(staged)), (self.code(native), self.lines(native)), said)
        self.assertIn("nessie: staged", said)
        names = sorted(os.listdir(self.path(native)))
        self.assertEqual(sorted(os.listdir(self.path(staged))), names, said)
        for name in names:
            self.assertTrue(filecmp.cmp(self.path(f"{native}/{name}"), self.path(f"{staged}/{name}"), shallow=False), said)

    def assert_nothing_left(self):
        wait_until(lambda: not self.has_processes(), f"the end of {marked_processes(self.mark)}")

        def left():
            return [name for node in self.cluster.names for name in self.cluster.private_files(node)
                    if re.search("nessie", name)]
        wait_until(lambda: not left(), f"run folders to go: {left()}", 20)


def nessie_run(*options):
    return [NESSIE, "run", *options, "--"]


def checkpoint(prefix, steps, compute_ms=0, grid="24,20,16"):
    return [CHECKPOINT, "--grid", grid, "--steps", str(steps), "--compute-ms", str(compute_ms), "--prefix", prefix]
