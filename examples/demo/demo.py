#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The demonstration: a simulation that nobody changed, natively and under `nessie run`.

Run:  ./dev demo            (or: examples/demo/demo.py --build-dir build)
Ends with a table of medians, the word that the files are identical, and a plot, nessie-demo.png.

Everything is measured from outside of Nessie: the simulation prints what its checkpoints cost it; the file system tells
when a checkpoint is in its file (the time of its last modification); the length of a run is that of the whole command,
with the start of the staging servers and the drain. NESSIE_DEMO_PROCS sets the number of processes (8).
"""
import argparse
import filecmp
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

RUN_LIMIT_S = 120
BYTES_PER_PROCESS = 10 * 32**3 * 8
CHECKPOINT_LINE = re.compile(r"^step +(\d+) .* checkpoint +([\d.]+) s")
RESULT_WORD = re.compile(r"(\w+)=([\d.]+)")
MODES = ("native", "direct", "caching")


class DemoError(Exception):
    """Why the demonstration cannot go on, and what to do, in one sentence."""


@dataclass
class Timing:
    """One run, in seconds. `durable_s`: from a checkpoint's begin until it was in its file, summed over the checkpoints."""
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


class Simulation:
    """Starts the simulation in one of the modes and times it."""

    def __init__(self, options, scratch):
        self.nessie = options.build_dir / "bin" / "nessie"
        self.program = options.build_dir / "examples" / "reaction_diffusion"
        self.options, self.scratch = options, scratch
        for path in (self.nessie, self.program):
            if not path.exists():
                raise DemoError(f"{path} is missing; build it first: ./dev build")

    def run(self, mode, folder, mpi_io, checkpoints):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        interval = self.options.interval
        command = ["mpiexec", "--oversubscribe", "-n", str(self.options.processes), "--mca", "io", mpi_io, self.program,
                   "--steps", checkpoints * interval, "--interval", interval, "--prefix", folder / "flame"]
        if mode != "native":
            command = [self.nessie, "run", "--quiet", "--mode", mode, "--"] + command
        return self._timed([str(word) for word in command], folder)

    def _timed(self, command, folder):
        began = time.time()
        lines = self._output(command)
        run_s = time.time() - began
        figures = dict(RESULT_WORD.findall(lines[-1][1])) if lines else {}
        if "io_s" not in figures:
            raise DemoError(f"the simulation printed no result; run it by hand: {' '.join(command)}")
        durable_s = sum(seconds_until_in_file(arrival, line, folder) for arrival, line in lines)
        return Timing(float(figures["io_s"]), durable_s, run_s, float(figures["bytes"]))

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


def seconds_until_in_file(arrival, line, folder):
    """For the line that tells a checkpoint's end: how long after its begin its file was changed for the last time."""
    checkpoint = CHECKPOINT_LINE.match(line)
    if not checkpoint:
        return 0.0
    step, seconds = int(checkpoint[1]), float(checkpoint[2])
    modified = (folder / f"flame.{step:04d}.nc").stat().st_mtime
    return seconds + max(0.0, modified - arrival)


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


def choose_mpi_io(simulation, scratch, progress):
    """Native PnetCDF at its best: Open MPI has two implementations of MPI-IO, and which one is faster depends."""
    times = {}
    for mpi_io in ("ompio", "romio321") * 2:
        progress.step(f"probe: native PnetCDF on {mpi_io}")
        timing = simulation.run("native", scratch / "probe", mpi_io, checkpoints=4)
        times.setdefault(mpi_io, []).append(timing.io_s)
    shutil.rmtree(scratch / "probe")
    best = {mpi_io: min(seconds) for mpi_io, seconds in times.items()}
    return min(best, key=best.get), best


def compare(scratch, expected):
    """Every file of every mode, byte for byte."""
    names = sorted(path.name for path in (scratch / "native").glob("*.nc"))
    if len(names) != expected:
        raise DemoError(f"{expected} checkpoints were asked for, but there are {len(names)}; please report this")
    for mode in MODES[1:]:
        if sorted(path.name for path in (scratch / mode).glob("*.nc")) != names:
            raise DemoError(f"the native run and the one in mode {mode} left different files; please report this")
        for name in names:
            if not filecmp.cmp(scratch / "native" / name, scratch / mode / name, shallow=False):
                raise DemoError(f"{name} differs between the native run and the one in mode {mode}; please report this")
    return len(names)


def measure(simulation, options, scratch, mpi_io, progress):
    """Several repetitions, the modes interleaved and in turning order, so that what drifts hits all of them alike."""
    timings, compared = {mode: [] for mode in MODES}, 0
    for repetition in range(options.repetitions):
        turn = repetition % len(MODES)
        for mode in MODES[turn:] + MODES[:turn]:
            progress.step(f"repetition {repetition + 1} of {options.repetitions}: {mode}")
            timings[mode].append(simulation.run(mode, scratch / mode, mpi_io, options.checkpoints))
        compared += compare(scratch, options.checkpoints)
    return timings, compared


def median(timings, name):
    return statistics.median(getattr(timing, name) for timing in timings)


def ratio(timings, native, name):
    return statistics.median(getattr(ours, name) / getattr(theirs, name) for ours, theirs in zip(timings, native))


COLUMNS = (("time in I/O", "io_s", " s", 3), ("until in the file", "durable_s", " s", 3), ("whole run", "run_s", " s", 2),
           ("perceived", "perceived_MBps", " MB/s", 0), ("durable", "durable_MBps", " MB/s", 0))


def table(timings, mpi_io):
    """The medians, and in brackets how many times native's: rows of cells, the first with the titles."""
    labels = {"native": f"native ({mpi_io})", "direct": "staged, direct", "caching": "staged, caching"}
    rows = [[""] + [title for title, *_ in COLUMNS]]
    for mode in MODES:
        row = [labels[mode]]
        for _, name, unit, digits in COLUMNS:
            times = f" ({ratio(timings[mode], timings['native'], name):.2f} x)" if mode != "native" else ""
            row.append(f"{median(timings[mode], name):.{digits}f}{unit}{times}")
        rows.append(row)
    return rows


def print_table(rows):
    for row in rows:
        print(f"{row[0]:<18}" + "".join(f"{cell:>22}" for cell in row[1:]))
    print("(medians; in brackets: times native's)")


def print_markdown(rows):
    for number, row in enumerate(rows):
        print("| " + " | ".join(row) + " |")
        if number == 0:
            print("|---|" + "---:|" * len(COLUMNS))


def draw(timings, options, path):
    """The same as a picture. False if there is no matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot
    colours = {"native": "#9aa5b1", "direct": "#7fb3d5", "caching": "#1f6f8b"}
    panels = (("the simulation's time in I/O", "io_s"), ("until the bytes were in the file", "durable_s"),
              ("the whole run, with the drain", "run_s"))
    figure, axes = pyplot.subplots(1, len(panels), figsize=(10, 3.8))
    for axis, (title, name) in zip(axes, panels):
        values = [median(timings[mode], name) for mode in MODES]
        spread = [[value - min(getattr(t, name) for t in timings[mode]) for value, mode in zip(values, MODES)],
                  [max(getattr(t, name) for t in timings[mode]) - value for value, mode in zip(values, MODES)]]
        axis.bar(MODES, values, color=[colours[mode] for mode in MODES], width=0.62, yerr=spread,
                        error_kw={"ecolor": "#52606d", "elinewidth": 0.9, "capsize": 2})
        labels = [f"{mode}\n{value:.2f} s" for mode, value in zip(MODES, values)]
        axis.set_xticks(range(len(MODES)), labels, fontsize=10.5)
        axis.tick_params(axis="x", length=0)
        axis.set_title(title, fontsize=11)
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.set_yticks([])
        axis.set_ylim(0, max(v + s for v, s in zip(values, spread[1])) * 1.05)
    size_mib = options.checkpoints * options.processes * BYTES_PER_PROCESS / 2**20
    caption = (f"{options.processes} processes, {options.checkpoints} checkpoints, {size_mib:.0f} MiB; medians and extremes "
               f"of {options.repetitions} runs; identical files")
    figure.suptitle(caption, fontsize=10, color="#52606d", y=0.04)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, dpi=150)
    return True


def ensure_space(options, scratch):
    needed = (len(MODES) + 1) * options.checkpoints * options.processes * BYTES_PER_PROCESS
    free = shutil.disk_usage(scratch).free
    if free < needed:
        raise DemoError(f"{scratch} has {free >> 20} MiB free, not {needed >> 20}; set TMPDIR to a larger place")


def demonstrate(options, scratch):
    ensure_space(options, scratch)
    simulation = Simulation(options, scratch)
    progress = Progress(4 + options.repetitions * len(MODES))
    mpi_io, probe = choose_mpi_io(simulation, scratch, progress)
    timings, compared = measure(simulation, options, scratch, mpi_io, progress)
    progress.finish()

    print(f"\nA reacting flow on {options.processes} processes writes {options.checkpoints} checkpoints of "
          f"{options.processes * BYTES_PER_PROCESS / 2**20:.0f} MiB; {options.repetitions} runs each.")
    print("Native PnetCDF runs on the faster MPI-IO of Open MPI: " + ", ".join(
        f"{name} {seconds:.3f} s in I/O" for name, seconds in probe.items()) + f": {mpi_io}.\n")
    rows = table(timings, mpi_io)
    print_markdown(rows) if options.markdown else print_table(rows)
    print(f"\nThe files are identical: {compared} of each mode, compared byte for byte with the native ones.")
    picture = options.picture.resolve()
    if draw(timings, options, picture):
        print(f"The picture: {picture}")
    else:
        print("No picture: matplotlib is missing (apt-get install python3-matplotlib).")


def read_options():
    parser = argparse.ArgumentParser(description="A simulation with and without Nessie: table and plot.")
    parser.add_argument("--build-dir", type=Path, default=Path(__file__).resolve().parents[2] / "build")
    parser.add_argument("--processes", type=int, default=os.environ.get("NESSIE_DEMO_PROCS", "8"))
    parser.add_argument("--checkpoints", type=int, default=20)
    parser.add_argument("--interval", type=int, default=30, help="time steps between checkpoints")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--picture", type=Path, default=Path("nessie-demo.png"))
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    options = parser.parse_args()
    if min(options.processes, options.checkpoints, options.interval, options.repetitions) < 1:
        parser.error("--processes, --checkpoints, --interval and --repetitions must be positive")
    return options


def main():
    options = read_options()
    try:
        with tempfile.TemporaryDirectory(prefix="nessie-demo-") as scratch:
            demonstrate(options, Path(scratch))
    except (DemoError, OSError) as error:
        sys.exit(f"\ndemo: {error}")
    except KeyboardInterrupt:
        sys.exit("\ndemo: interrupted")


if __name__ == "__main__":
    main()
