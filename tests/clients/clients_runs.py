# SPDX-License-Identifier: BSD-3-Clause
"""Runs a command, and says what it took: time, and the CPU time of every process that it started."""
import ctypes
import json
import os
import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import Optional

PR_SET_CHILD_SUBREAPER = 36
PATIENCE_S = 10   # after SIGTERM
LAYERS = ("romio321", "ompio")   # Open MPI's two implementations of MPI-IO
LIBRARY = "libpnetcdf.so"


@dataclass
class Outcome:
    code: int   # negative: the signal that ended it
    out: str
    err: str
    time_s: float
    cpu_s: float
    was_stopped: bool


@dataclass(frozen=True)
class Variant:
    """A way to run every case: `before` are words in front of mpiexec's; {json} in them is a path for the summary, {folder}
    in values of `environment` an empty folder beside the program's."""
    name: str
    kind: str   # native, staged or rival
    before: tuple = ()
    environment: tuple = ()   # pairs

    def set_for(self, layer, folder):
        """The environment of a run, with that one of LAYERS."""
        own = {name: value.replace("{folder}", folder) for name, value in self.environment}
        return {**os.environ, "OMPI_MCA_io": layer, **own}


NATIVE = Variant("native", "native")


def staged(nessie, mode, options=()):
    return Variant(mode, "staged", (nessie, "run", "--mode", mode, "--json", "{json}", *options, "--"))


def rival(text):
    """Of NAME=FOLDER[,VARIABLE=VALUE…]: another PnetCDF, which lies in FOLDER. ValueError if it is not written like that."""
    words = [word.partition("=") for word in text.split(",")]
    if not all(name and equals for name, equals, _ in words):
        raise ValueError(f"--rival takes NAME=FOLDER[,VARIABLE=VALUE...], not {text}")
    folder = os.path.abspath(words[0][2])
    path = os.pathsep.join(filter(None, [folder, os.environ.get("LD_LIBRARY_PATH")]))
    settings = [(name, value) for name, _, value in words[1:]]
    return Variant(words[0][0], "rival", environment=(("LD_LIBRARY_PATH", path), *settings))


def library_of(executable, environment):
    """The PnetCDF that the loader would give a program, or None if it is linked to none."""
    listed = subprocess.run(["ldd", executable], env=environment, capture_output=True, text=True, check=False).stdout
    match = re.search(rf"{re.escape(LIBRARY)}\S* => (\S+)", listed)
    return match and match.group(1)


def misses(variant, executable):
    """Why a rival would run with the same library as everybody else; None if it does not."""
    if library_of(executable, variant.set_for("", "")) != library_of(executable, dict(os.environ)):
        return None
    return f"another {LIBRARY} is not found there by the name that the program is linked to (a symbolic link will do)"


def modes_of(nessie):
    """Those that `nessie run --help` lists."""
    text = subprocess.run([nessie, "run", "--help"], capture_output=True, text=True, check=True).stdout
    return re.search(r"--mode TEXT:\{([^}]+)\}", text).group(1).split(",")


# --- one command ------------------------------------------------------------------------------------------------------

def adopt_orphans():
    """From now on whoever loses its parent below this process becomes its child, so that execute() waits for all."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def parents():
    """{process: its parent} of all that can be seen."""
    found = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                found[int(entry)] = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            continue   # it ended meanwhile
    return found


def descendants():
    known, found = parents(), {os.getpid()}
    while True:
        more = {process for process, parent in known.items() if parent in found} - found
        if not more:
            return found - {os.getpid()}
        found |= more


def end(process):
    """Asks a command to end, and after a while ends all that is left of it."""
    for signal_number, processes in ((signal.SIGTERM, lambda: {process}), (signal.SIGKILL, descendants)):
        for pid in processes():
            try:
                os.kill(pid, signal_number)
            except ProcessLookupError:
                pass
        if signal_number == signal.SIGTERM:
            time.sleep(PATIENCE_S)


def wait_for_all(process):
    """(status of `process`, CPU seconds of it and of all that this process inherited from it)."""
    cpu_s, result = 0.0, None
    while True:
        try:
            pid, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return result, cpu_s
        cpu_s += usage.ru_utime + usage.ru_stime
        if pid == process.pid:
            result = process.returncode = os.waitstatus_to_exitcode(status)


def execute(command, environment, folder, limit_s):
    """Runs `command`, with nothing on stdin, and ends it and its descendants after `limit_s`. Returns when all are gone.
    stdout and stderr are kept in `folder`. adopt_orphans() was called."""
    paths = [os.path.join(folder, name) for name in ("stdout", "stderr")]
    stopped = threading.Event()
    with open(paths[0], "wb") as out, open(paths[1], "wb") as err:
        begin = time.monotonic()
        process = subprocess.Popen(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        timer = threading.Timer(limit_s, lambda: (stopped.set(), end(process.pid)))
        timer.start()
        try:
            code, cpu_s = wait_for_all(process)
        except BaseException:
            end(process.pid)
            raise
        finally:
            timer.cancel()
        time_s = time.monotonic() - begin
    return Outcome(code, *map(read_text, paths), time_s, cpu_s, stopped.is_set())


def read_text(path):
    with open(path, errors="backslashreplace") as file:
        return file.read()


def read_summary(path) -> Optional[dict]:
    """What `nessie run --json` wrote, or None if it did not."""
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None
