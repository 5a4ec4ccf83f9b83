# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of whole processes share.

Every process that a test starts, directly or not, carries a mark in its environment; so a test can find its servers and
ranks, and, at its end, whatever was left behind.
"""
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

BUILD = os.environ.get("NESSIE_BUILD_DIR", os.path.join(os.path.dirname(__file__), "../../build"))
NESSIE = os.path.join(BUILD, "bin", "nessie")
CHECKPOINT = os.path.join(BUILD, "examples", "checkpoint")
MARK = "NESSIE_TEST_MARK"
DEADLINE_S = 90
# What a program is linked with that a test compiles: a sanitizer's run time must be in it from its start.
SANITIZER = [f"-fsanitize={os.environ['NESSIE_SANITIZED']}"] if "NESSIE_SANITIZED" in os.environ else []


def unsanitized(why, which=""):
    """Leaves a test out where everything is built with a sanitizer: with any, or with `which` (address, thread)."""
    sanitizers = os.environ.get("NESSIE_SANITIZED")
    return unittest.skipIf(sanitizers is not None and which in sanitizers, f"not below a sanitizer: {why}")


def mpiexec(processes, *command):
    return ["mpiexec", "--oversubscribe", "-n", str(processes), *command]


def checkpoint(processes, prefix, steps=2, grid="24,20,16", **options):
    """The command line of the checkpoint writer: CHECKPOINT options as keywords."""
    command = mpiexec(processes, CHECKPOINT, "--grid", grid, "--steps", str(steps), "--prefix", prefix)
    for name, value in options.items():
        command += ["--" + name.replace("_", "-")] + ([] if value is True else [str(value)])
    return command


def compile_job(folder):
    """embedded/job.c, as a program in the folder; returns its path."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "embedded", "job.c")
    program = os.path.join(folder, "embedded_job")
    subprocess.run(["mpicc.openmpi", "-O1", *SANITIZER, "-o", program, source, "-lpnetcdf"], check=True)
    return program


def read_file(path):
    with open(path, "rb") as file:
        return file.read()


def wait_until(condition, what, deadline_s=DEADLINE_S):
    """Polls `condition` until it returns something true, and returns that. `what`: for people, or what tells it in the end."""
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(f"waited {deadline_s} s for: {what() if callable(what) else what}")


class Process:
    """A process that was found by its mark."""

    def __init__(self, pid, words):
        self.pid, self.words = pid, words
        self.name = os.path.basename(words[0]) if words else "?"

    def __repr__(self):
        return f"{self.pid} ({' '.join(self.words)})"


def marked_processes(mark):
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            if f"{MARK}={mark}".encode() not in read_file(f"/proc/{entry}/environ").split(b"\0"):
                continue
            words = read_file(f"/proc/{entry}/cmdline").decode(errors="replace").split("\0")[:-1]
        except OSError:
            continue   # it ended meanwhile, or is another user's
        if words:
            found.append(Process(int(entry), words))
    return found


def shared_memory_in_use():
    """The files under /dev/shm that some process has mapped."""
    used = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/maps") as maps:
                    used.update(line.split()[5] for line in maps if "/dev/shm/" in line)
            except (OSError, IndexError):
                continue
    return used


def shared_memory():
    found = set()
    for folder, _, files in os.walk("/dev/shm"):
        found.update(os.path.join(folder, name) for name in files)
    return found


def things_in(runtime):
    """What there is in a user's folder of that name, but for the one in which servers of streams announce themselves: that
    stays, and is empty without them."""
    announced = any(files for _, _, files in os.walk(os.path.join(runtime, "nessie")))
    return sorted(name for name in os.listdir(runtime) if name != "nessie" or announced)


def kill_at_once(find, leaders):
    """Of those that find() gives, also of what they start meanwhile, none lives to see another's end. Who is older goes
    first, since it takes a moment until all threads have stopped: a server before its clients. Leaders come last: a
    leader's end wakes whoever is stopped in its process group."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in sorted(find(), key=lambda pid: (pid in leaders, pid)):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass


class Job:
    """A command that runs, with all of its descendants."""

    def __init__(self, case, command, env=None, stdin=subprocess.DEVNULL, **popen):
        self.case = case
        popen = {"cwd": case.folder, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
        self.process = subprocess.Popen(command, env={**case.env, **(env or {})}, stdin=stdin, **popen)
        case.jobs.append(self)

    def finish(self, deadline_s=DEADLINE_S, text=None):
        """Waits for its end; returns (exit code, stdout, stderr)."""
        try:
            out, err = self.process.communicate(text, timeout=deadline_s)
        except subprocess.TimeoutExpired:
            left = marked_processes(self.case.mark)
            self.case.kill_marked()
            out, err = self.process.communicate()
            raise AssertionError(f"still running after {deadline_s} s: {left}\n{out}\n{err}") from None
        return self.process.returncode, out, err

    def descendants(self, name):
        return [process for process in marked_processes(self.case.mark) if process.name == name]

    def wait_for(self, name, count=1):
        """Waits until `count` processes of that name run; returns them."""
        def found():
            if self.process.poll() is not None:
                raise AssertionError(f"ended before {name} ran:\n{self.process.communicate()}")
            processes = self.descendants(name)
            return processes if len(processes) >= count else None
        return wait_until(found, f"{count} processes called {name}")


class ProcessTestCase(unittest.TestCase):
    """Gives each test a folder and a mark, and fails it if it leaves processes, shared memory or run folders."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="nt-", dir="/tmp")
        self.runtime = os.path.join(self.folder, "run")
        os.mkdir(self.runtime, 0o700)
        self.mark = uuid.uuid4().hex
        self.jobs = []
        self.memory_before = shared_memory()
        self.env = {**os.environ, MARK: self.mark, "XDG_RUNTIME_DIR": self.runtime, "TMPDIR": self.folder,
                    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        if "NESSIE_TEST_PRELOAD" in os.environ:   # a sanitizer's run time, for programs that were built without it
            self.env["LD_PRELOAD"] = os.environ["NESSIE_TEST_PRELOAD"]
        self.addCleanup(self.clean_up)

    def path(self, name):
        return os.path.join(self.folder, name)

    def job(self, command, **options):
        return Job(self, command, **options)

    def run_command(self, command, **options):
        return self.job(command, **options).finish()

    def nessie_run(self, command, options=(), **job_options):
        """(exit code, stdout, stderr) of `nessie run options -- command`."""
        return self.run_command([NESSIE, "run", *options, "--", *command], **job_options)

    def start_nessie_run(self, command, options=(), **job_options):
        return self.job([NESSIE, "run", *options, "--", *command], **job_options)

    def kill_marked(self):
        kill_at_once(lambda: [process.pid for process in marked_processes(self.mark)],
                     {job.process.pid for job in self.jobs})

    def assert_nothing_left(self):
        """No process, no run folder, no shared memory; those that are about to go are given time."""
        wait_until(lambda: not marked_processes(self.mark) or None, f"the end of {marked_processes(self.mark)}", 60)
        wait_until(lambda: not things_in(self.runtime), lambda: f"{self.runtime} to be empty: {things_in(self.runtime)}", 30)

        def leaked():
            return shared_memory() - self.memory_before - shared_memory_in_use()
        wait_until(lambda: not leaked(), f"shared memory to go: {leaked()}", 30)

    def clean_up(self):
        self.kill_marked()
        for job in self.jobs:
            job.process.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)
