# SPDX-License-Identifier: BSD-3-Clause
"""What the runs of a case come to, and how that is printed."""
import json
import statistics
from dataclasses import dataclass, field
from typing import Optional

MIB = 1 << 20
HEAD = ("case", "processes", "mode", "MiB/s", "ratio", "time s", "CPU s", "servers", "files")
ARROW = " → "


@dataclass
class Run:
    """One run. `problem`: in a sentence, why nothing that it measured counts."""
    time_s: float
    cpu_s: float
    rates: dict = field(default_factory=dict)
    memory_high_bytes: int = 0
    problem: Optional[str] = None


@dataclass
class Result:
    """The runs of a case in one way. `files`: "same", or what is wrong with them; "" natively."""
    case: str
    processes: int
    place: str
    variant: str
    kind: str
    layer: str
    runs: list = field(default_factory=list)
    files: str = ""
    left_out_bytes: int = 0

    def problem(self):
        return next((run.problem for run in self.runs if run.problem), None)

    def is_well(self):
        return not self.problem() and self.files in ("", "same")

    def median(self, measure):
        """Of what `measure` returns for a run; None if that is None for all that count."""
        values = [measure(run) for run in self.runs if not run.problem]
        values = [value for value in values if value is not None]
        return statistics.median(values) if values else None

    def rate(self, label):
        return self.median(lambda run: run.rates.get(label))

    def labels(self):
        return list(dict.fromkeys(label for run in self.runs for label in run.rates)) or [""]

    def ratio(self, native, label):
        """The median of the ratios within the repetitions, natively in the denominator; None if there is none."""
        pairs = [(ours.rates.get(label), theirs.rates.get(label)) for ours, theirs in zip(self.runs, native.runs)
                 if not ours.problem and not theirs.problem]
        ratios = [ours / theirs for ours, theirs in pairs if ours is not None and theirs]
        return statistics.median(ratios) if ratios else None

    def to_json(self, native):
        return json.dumps({
            "case": self.case, "processes": self.processes, "folder": self.place, "run": self.variant, "kind": self.kind,
            "mpi_io": self.layer, "n": len(self.runs), "rates_MiBps": {label: self.rate(label) for label in self.labels()},
            "ratios": {label: self.ratio(native, label) for label in self.labels()},
            "time_s": self.median(lambda run: run.time_s), "cpu_s": self.median(lambda run: run.cpu_s),
            "memory_high_bytes": self.median(lambda run: run.memory_high_bytes), "files": self.files,
            "left_out_bytes": self.left_out_bytes, "problem": self.problem()})


def figure(value):
    """Three digits, or as many as there are before the point."""
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def pair(native, ours, measure):
    return figure(native.median(measure)) + ARROW + figure(ours.median(measure))


def describe_files(result):
    """The verdict, and how many bytes it is not about."""
    left_out = f" ({result.left_out_bytes} bytes left out)" if result.left_out_bytes else ""
    return result.problem() or result.files + left_out


def rate_cells(native, ours, label):
    words = [label] if label else []
    return " ".join([*words, pair(native, ours, lambda run: run.rates.get(label))]), figure(ours.ratio(native, label))


def rows_of(native, ours, rivals):
    """The lines of a table for one way to run a case: one for each rate that the program prints."""
    memory = ours.median(lambda run: run.memory_high_bytes)
    for line, label in enumerate(native.labels()):
        rates = rate_cells(native, ours, label)
        beside = [figure(rival.rate(label)) for rival in rivals]
        if line:
            yield ["", "", "", *rates, "", "", "", "", *beside]
        else:
            yield [native.case, str(native.processes), ours.variant, *rates, pair(native, ours, lambda run: run.time_s),
                   pair(native, ours, lambda run: run.cpu_s), "–" if memory is None else f"{memory / MIB:.0f} MiB",
                   describe_files(ours), *beside]


def table(results):
    """Of one folder, native results first in each case; the rivals' rates in columns of their own."""
    rivals = list(dict.fromkeys(result.variant for result in results if result.kind == "rival"))
    lines = [[*HEAD, *rivals]]
    for case in dict.fromkeys(result.case for result in results):
        of_case = [result for result in results if result.case == case]
        known = {result.variant: result for result in of_case if result.kind == "rival"}
        beside = [known.get(name, Result(case, 0, "", name, "rival", "")) for name in rivals]
        native = of_case[0]
        for ours in (result for result in of_case if result.kind == "staged"):
            lines += rows_of(native, ours, beside)
        if native.problem():
            lines.append([case, str(native.processes), "native", "–", "–", "–", "–", "–", native.problem()])
    return aligned(lines)


def aligned(lines):
    widths = [max(len(line[column]) for line in lines if column < len(line)) for column in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def remarks(results):
    """A line for each rival whose run, or whose files, are not well; the table has no room for them."""
    return [f"{result.case}, {result.variant}: {describe_files(result)}"
            for result in results if result.kind == "rival" and not result.is_well()]
