#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs public programs of the field natively and under `nessie run`: same files, at what rate, for what.

  ./dev clients FOLDER [--mode caching] [--repetitions 3] [--only e3sm] [--dir /scratch] [--json] ...

FOLDER is where they were built; docs/benchmarks.md says which are known, and what the table's columns are.
"""
import argparse
import os
import shutil
import signal
import sys
import tempfile

import clients_cases
import clients_files
import clients_runs
from clients_runs import LAYERS, NATIVE
from clients_table import Result, Run, remarks, table

BUILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build")


def say(text):
    print(f"clients: {text}", file=sys.stderr, flush=True)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="./dev clients", allow_abbrev=False,
                                     description="Runs public programs natively and staged, and compares.")
    parser.add_argument("folder", help="where the programs were built; looked through to some depth")
    parser.add_argument("--mode", action="append", default=[], help="of `nessie run`; may be repeated (all that it has)")
    parser.add_argument("--repetitions", type=int, default=3, help="of each run; medians are printed (3)")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="cases with NAME in their name")
    parser.add_argument("--dir", action="append", default=[], metavar="FOLDER",
                        help="where the files are written; may be repeated (/dev/shm)")
    parser.add_argument("--rival", action="append", default=[], metavar="NAME=FOLDER[,VARIABLE=VALUE...]",
                        help="run natively with the PnetCDF in FOLDER, too; {folder} in a VALUE is an empty folder")
    parser.add_argument("--servers", default="1", help="staging servers (1)")
    parser.add_argument("--memory", help="of each server, as for `nessie run`")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="after which a run is ended (300)")
    parser.add_argument("--json", action="store_true", help="print one object a line instead of a table")
    parser.add_argument("--build-dir", default=BUILD, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.repetitions < 1:
        parser.error("--repetitions must be 1 or more")
    options.dir = options.dir or ["/dev/shm"]
    for folder in (options.folder, *options.dir):
        if not os.path.isdir(folder):
            parser.error(f"there is no folder {folder}")
    return options, parser


def variants_of(options, parser):
    """Staged ways first, then the rivals."""
    nessie = os.path.join(os.path.abspath(options.build_dir), "bin", "nessie")
    flags = ("--servers", options.servers) + (("--memory", options.memory) if options.memory else ())
    known = clients_runs.modes_of(nessie)
    for mode in set(options.mode) - set(known):
        parser.error(f"nessie run knows no mode {mode}, only {', '.join(known)}")
    try:
        rivals = [clients_runs.rival(text) for text in options.rival]
    except ValueError as error:
        parser.error(str(error))
    return [clients_runs.staged(nessie, mode, flags) for mode in options.mode or known] + rivals


class Bench:
    """One case in one folder, with files of its own that are gone when it is closed."""

    def __init__(self, case, found, place, limit_s):
        self.case, self.found, self.place, self.limit_s = case, found, place, limit_s
        self.folder = tempfile.mkdtemp(prefix="nessie-clients-", dir=place)
        self.reference = None   # what the first native run that went well has written

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def fresh(self, name):
        shutil.rmtree(self.path(name), ignore_errors=True)
        os.mkdir(self.path(name))
        return self.path(name)

    def command(self, variant, summary_path):
        """Its words; the folder for the program's files is empty afterwards."""
        out = self.fresh("out")
        if self.case.settings:
            with open(self.path("settings"), "w") as file:
                file.write(self.case.settings.format(out=out))
        before = [word.format(json=summary_path) for word in variant.before]
        return [*before, "mpiexec", "-n", str(self.case.processes),
                *self.case.command(self.found, out, self.path("settings"))]

    def run(self, variant, layer):
        """Runs it once; its files are left in `out`."""
        beside = self.fresh("beside")
        summary_path = os.path.join(self.fresh("told"), "summary")
        command = self.command(variant, summary_path)
        outcome = clients_runs.execute(command, variant.set_for(layer, beside), self.folder, self.limit_s)
        summary = clients_runs.read_summary(summary_path)
        run = Run(outcome.time_s, outcome.cpu_s, self.case.rates(outcome.out), (summary or {}).get("memory_high_bytes", 0))
        run.problem = self.problem(variant, outcome, summary)
        if run.problem:
            say(f"{self.case.name}, {variant.name}: {run.problem}\n{tail(outcome.err)}")
        return run

    def problem(self, variant, outcome, summary):
        if outcome.was_stopped:
            return f"did not end within {self.limit_s:g} s"
        if outcome.code:
            return f"ended with {outcome.code}"
        if self.case.complaint and self.case.complaint in outcome.out + outcome.err:
            return f"it says: {self.case.complaint}"
        return not_staged(summary) if variant.kind == "staged" else None

    def keep(self):
        """What a native run left in `out` is what others are compared with, or says which bytes are not."""
        if self.reference:
            self.reference.add(self.path("out"))
        else:
            os.rename(self.path("out"), self.path("reference"))
            self.reference = clients_files.Reference(self.path("reference"))

    def try_layer(self, layer):
        say(f"{self.case.name}: native, {layer}")
        run = self.run(NATIVE, layer)
        if not run.problem:
            self.keep()
        return run

    def faster_layer(self):
        """Tries each layer, and again where that decides little. Returns (that with the highest rate, []), or, if it runs on
        none, (None, the runs)."""
        runs = {layer: [self.try_layer(layer)] for layer in LAYERS}
        if are_close(*(runs[layer][0] for layer in LAYERS)):
            for layer in reversed(LAYERS):
                runs[layer].append(self.try_layer(layer))
        good = [layer for layer in LAYERS if not any(run.problem for run in runs[layer])]
        if not good:
            return None, runs[LAYERS[0]]
        return max(good, key=lambda layer: max(map(speed, runs[layer]))), []

    def result(self, variant, layer, runs=()):
        return Result(self.case.name, self.case.processes, self.place, variant.name, variant.kind, layer or "", list(runs))

    def judge(self, result):
        """Compares what is in `out`; the first verdict that is not "same" stays."""
        verdict = self.reference.compare(self.path("out"))
        result.left_out_bytes = max(result.left_out_bytes, verdict.left_out_bytes)
        if result.files in ("", "same"):
            result.files = verdict.said

    def measure(self, variants, repetitions):
        """Every variant in turn, `repetitions` times. Returns results, the native one first."""
        layer, failed = self.faster_layer()
        results = [self.result(variant, layer) for variant in (NATIVE, *variants)]
        if failed:
            return [self.result(NATIVE, layer, failed)]
        for number in range(repetitions):
            for variant, result in zip((NATIVE, *variants), results):
                say(f"{self.case.name}: {variant.name}, {layer}, {number + 1} of {repetitions}")
                self.repeat(variant, layer, result)
        return results

    def repeat(self, variant, layer, result):
        run = self.run(variant, layer)
        result.runs.append(run)
        if not run.problem and variant is NATIVE:
            self.keep()
        elif not run.problem:
            self.judge(result)


def tail(text, lines=20):
    return "\n".join(text.splitlines()[-lines:])


def not_staged(summary):
    """Why a run under `nessie run` says nothing of staging, or None."""
    if summary is None:
        return "there is no summary"
    if summary["native"]:
        return f"not staged: {summary['native'][0]}"
    is_reached = summary["bytes_staged"] + summary["bytes_read"] + summary["left_native"]
    return None if is_reached else "not staged: the program is not reached"


def speed(run):
    """For comparisons of one program's runs: its rate, or, if it printed none, how often it could have been run a second."""
    rates = [rate for rate in run.rates.values() if rate]
    return rates[0] if rates else 1 / run.time_s


def are_close(*runs):
    """Whether each went well, and none was more than four times as fast as another, as one may be by chance."""
    speeds = [speed(run) for run in runs if not run.problem]
    return len(speeds) == len(runs) and max(speeds) <= 4 * min(speeds)


def can_run(case, found):
    missing = [name for name in case.needs() if name not in found]
    if missing:
        say(f"{case.name}: left out, there is no {missing[0]}")
    return not missing


def take_rivals(variants, executables, parser):
    """Refuses those that would be no other library for one of the programs."""
    for variant in variants:
        for executable in executables if variant.kind == "rival" else ():
            why = clients_runs.misses(variant, executable)
            if why:
                parser.error(f"--rival {variant.name}: {os.path.basename(executable)}: {why}")


def measure(case, found, place, variants, options):
    bench = Bench(case, found, place, options.limit)
    try:
        return bench.measure(variants, options.repetitions)
    finally:
        bench.close()


def tell(place, results, as_json):
    """`results`: of one case as JSON, of all as a table."""
    if as_json:
        print("\n".join(result.to_json(results[0]) for result in results), flush=True)
        return
    print(f"\nin {place}, native{' → '}staged, medians of {max(len(result.runs) for result in results)}:\n")
    print("\n".join([table(results), *remarks(results)]), flush=True)


def main(arguments):
    options, parser = parse(arguments)
    variants = variants_of(options, parser)
    known = [case for case in clients_cases.CASES if clients_cases.wanted(case.name, options.only)]
    found = clients_cases.find(os.path.abspath(options.folder), known)
    cases = [case for case in known if can_run(case, found)]
    if not cases:
        parser.error(f"no program that is wanted was found in {options.folder}")
    take_rivals(variants, sorted({found[case.executable] for case in cases}), parser)
    clients_runs.adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))   # the files go, too
    everything = []
    for place in options.dir:
        results = []
        for case in cases:
            of_case = measure(case, found, os.path.abspath(place), variants, options)
            results += of_case
            if options.json:
                tell(place, of_case, True)
        if not options.json:
            tell(place, results, False)
        everything += results
    return 0 if all(result.is_well() for result in everything if result.kind != "rival") else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
