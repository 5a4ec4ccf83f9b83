#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The demonstration: two programs that nobody changed, natively and under `nessie run`.

Run:  ./dev demo            (or: examples/demo/demo.py --build-dir build)
      ./dev demo --way all  one of them in each way in which jobs are launched (ways.py)
Ends with a table of medians, the word that the files are identical, and a plot, nessie-demo.png.

Everything is measured from outside of Nessie: the programs print what their files cost them; the file system tells
when a file has all of its data (the time of its last modification); the length of a run is that of the whole command,
with the start of the staging servers and the drain. NESSIE_DEMO_PROCS sets the number of processes (8).
"""
import argparse
import filecmp
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import report
import ways
from programs import Program, programs
from report import MODES

RUN_LIMIT_S = 120
RESULT_WORD = re.compile(r"(\w+)=([\d.]+)")
FULL = {"checkpoints": 20, "interval": 30, "repetitions": 5}
QUICK = {"checkpoints": 2, "interval": 2, "repetitions": 1}


class DemoError(Exception):
    """Why the demonstration cannot go on, and what to do, in one sentence."""


@dataclass
class Timing:
    """One run, in seconds. `durable_s`: from when a file was begun until its data were in it, summed over the files."""
    io_s: float
    durable_s: float
    run_s: float
    bytes: float

    @property
    def perceived_MBps(self):
        return self.bytes / self.io_s / 1e6

    @property
    def durable_MBps(self):
        return self.bytes / self.durable_s / 1e6


@dataclass
class Measured:
    program: Program
    mpi_io: str
    probe: dict         # seconds in I/O on each MPI-IO
    timings: dict       # of each mode, repetition by repetition
    compared: int       # files of each mode


class Progress:
    """A bar on a terminal; without one, a line for each step."""

    def __init__(self, steps):
        self.steps, self.done = steps, 0

    def step(self, what):
        if sys.stderr.isatty():
            filled = 30 * self.done // self.steps
            print(f"\r\033[K[{'#' * filled}{'.' * (30 - filled)}] {what}", end="", file=sys.stderr, flush=True)
        else:
            print(f"[{self.done + 1}/{self.steps}] {what}", file=sys.stderr, flush=True)
        self.done += 1

    def finish(self):
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


class Runner:
    """Starts one of the programs in one of the modes and times it."""

    def __init__(self, options, program, scratch):
        self.nessie = options.build_dir / "bin" / "nessie"
        self.executable = options.build_dir / program.executable
        self.options, self.program, self.scratch = options, program, scratch
        for path in (self.nessie, self.executable):
            if not path.exists():
                raise DemoError(f"{path} is missing; build it first: ./dev build")

    def run(self, mode, folder, mpi_io, arguments):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        command = ["mpiexec", "--oversubscribe", "-n", self.options.processes, "--mca", "io", mpi_io, self.executable,
                   *arguments, "--prefix", folder / "out"]
        if mode != "native":
            command = [self.nessie, "run", "--quiet", "--mode", mode, "--"] + command
        return self._timed([str(word) for word in command], folder)

    def _timed(self, command, folder):
        began = time.time()
        lines = self._output(command)
        run_s = time.time() - began
        figures = dict(RESULT_WORD.findall(lines[-1][1])) if lines else {}
        if "io_s" not in figures:
            raise DemoError(f"the program printed no result; run it by hand: {' '.join(command)}")
        durable_s = sum(self._seconds_until_in_file(arrival, line, folder) for arrival, line in lines)
        return Timing(float(figures["io_s"]), durable_s, run_s, float(figures["bytes"]))

    def _seconds_until_in_file(self, arrival, line, folder):
        """For the line that tells a file's end: how long after its begin it was changed for the last time, by the
        kernel's own time: a server gives the file the time of its close as that of its last write."""
        wrote = self.program.wrote(line)
        if not wrote:
            return 0.0
        suffix, seconds = wrote
        return seconds + max(0.0, (folder / f"out{suffix}").stat().st_ctime - arrival)

    def _output(self, command):
        """The lines that the command prints, each with the time at which it came."""
        with tempfile.TemporaryFile("w+", dir=self.scratch) as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=mpi_environment())
            guard = threading.Timer(RUN_LIMIT_S, process.terminate)
            guard.start()
            try:
                lines = [(time.time(), line) for line in process.stdout]
                code = process.wait()
            finally:
                timed_out = not guard.is_alive()
                guard.cancel()
                end(process)
            if timed_out:
                raise DemoError(f"no end after {RUN_LIMIT_S} s, ended by force: {' '.join(command)}")
            if code != 0:
                raise DemoError(f"exit code {code} from: {' '.join(command)}\n{tail(errors)}")
        return lines


def mpi_environment():
    """Open MPI refuses to run as root, as in a container, unless it is told that this is meant."""
    environment = dict(os.environ)
    if os.geteuid() == 0:
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return environment


def end(process):
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def tail(file, size=2000):
    file.seek(0)
    return file.read()[-size:].strip()


def choose_mpi_io(runner, scratch, progress):
    """Native PnetCDF at its best: Open MPI has two implementations of MPI-IO, and which one is faster depends."""
    best = {}
    for mpi_io in ("ompio", "romio321") * 2:
        progress.step(f"{runner.program.name}, probe: native PnetCDF on {mpi_io}")
        timing = runner.run("native", scratch / "probe", mpi_io, runner.program.probe)
        best[mpi_io] = min(timing.io_s, best.get(mpi_io, timing.io_s))
    shutil.rmtree(scratch / "probe")
    return min(best, key=best.get), best


def compare(scratch, expected):
    """Every file of every mode, byte for byte."""
    names = sorted(path.name for path in (scratch / "native").iterdir())
    if len(names) != expected:
        raise DemoError(f"{expected} files were to be written, but there are {len(names)}; please report this")
    for mode in MODES[1:]:
        if sorted(path.name for path in (scratch / mode).iterdir()) != names:
            raise DemoError(f"the native run and the one in mode {mode} left different files; please report this")
        for name in names:
            if not filecmp.cmp(scratch / "native" / name, scratch / mode / name, shallow=False):
                raise DemoError(f"{name} differs between the native run and the one in mode {mode}; please report this")
    return len(names)


def measure(program, options, scratch, progress):
    """Several repetitions, the modes interleaved and in turning order, so that what drifts hits all of them alike."""
    runner = Runner(options, program, scratch)
    mpi_io, probe = choose_mpi_io(runner, scratch, progress)
    timings, compared = {mode: [] for mode in MODES}, 0
    for repetition in range(options.repetitions):
        turn = repetition % len(MODES)
        for mode in MODES[turn:] + MODES[:turn]:
            progress.step(f"{program.name}, repetition {repetition + 1} of {options.repetitions}: {mode}")
            timings[mode].append(runner.run(mode, scratch / mode, mpi_io, program.arguments))
        compared += compare(scratch, program.files)
    return Measured(program, mpi_io, probe, timings, compared)


def ensure_space(all_programs, scratch):
    needed = (len(MODES) + 1) * max(program.mib for program in all_programs)
    free = shutil.disk_usage(scratch).free / 2**20
    if free < needed:
        raise DemoError(f"{scratch} has {free:.0f} MiB free, not {needed:.0f}; set TMPDIR to a larger place")


def measure_all(options, scratch):
    all_programs = programs(options)
    ensure_space(all_programs, scratch)
    progress = Progress(len(all_programs) * (4 + options.repetitions * len(MODES)))
    all_measured = []
    for program in all_programs:
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            all_measured.append(measure(program, options, Path(folder), progress))
    progress.finish()
    return all_measured


def demonstrate(options, scratch):
    all_measured = measure_all(options, scratch)
    print_table = report.print_markdown if options.markdown else report.print_table
    print_table(all_measured)
    print("\nNative PnetCDF runs on the faster MPI-IO of Open MPI, by its time in I/O:")
    for measured in all_measured:
        print(f"  {measured.program.name}: " + ", ".join(f"{name} {s:.3f} s" for name, s in measured.probe.items()))
    files = " and ".join(f"{measured.compared} of the {measured.program.name}" for measured in all_measured)
    print(f"The files are identical: in each mode {files} program, compared byte for byte with the native ones.")
    picture = options.picture.resolve()
    if report.draw(all_measured, picture):
        print(f"The picture: {picture}")
    else:
        print("No picture: matplotlib is missing (apt-get install python3-matplotlib).")


def read_options():
    parser = argparse.ArgumentParser(description="Two programs with and without Nessie: table and plot.")
    parser.add_argument("--build-dir", type=Path, default=Path(__file__).resolve().parents[2] / "build")
    parser.add_argument("--way", choices=["all", *ways.WAYS], help="instead: launched this way, natively and staged")
    parser.add_argument("--processes", type=int, default=os.environ.get("NESSIE_DEMO_PROCS", "8"))
    parser.add_argument("--checkpoints", type=int, help="of the reacting flow (20)")
    parser.add_argument("--interval", type=int, help="time steps between checkpoints (30)")
    parser.add_argument("--repetitions", type=int, help="of each program in each mode (5)")
    parser.add_argument("--quick", action="store_true", help="one small run of each: shows that it works, not how fast")
    parser.add_argument("--picture", type=Path, default=Path("nessie-demo.png"))
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    options = parser.parse_args()
    for name, usual in (QUICK if options.quick else FULL).items():
        if getattr(options, name) is None:
            setattr(options, name, usual)
    if min(options.processes, options.checkpoints, options.interval, options.repetitions) < 1:
        parser.error("--processes, --checkpoints, --interval and --repetitions must be positive")
    return options


def main():
    options = read_options()
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)   # the programs and the files go away, as after Ctrl-C
    try:
        with tempfile.TemporaryDirectory(prefix="nessie-demo-") as scratch:
            if options.way == "all":
                ways.show_all(options, Path(scratch))
            elif options.way:
                ways.show(options.way, options, Path(scratch))
            else:
                demonstrate(options, Path(scratch))
    except (DemoError, OSError, ways.WayError, subprocess.TimeoutExpired, AssertionError) as error:
        sys.exit(f"\ndemo: {error}")
    except KeyboardInterrupt:
        sys.exit("\ndemo: interrupted")


if __name__ == "__main__":
    main()
