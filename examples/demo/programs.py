# SPDX-License-Identifier: BSD-3-Clause
"""The programs of the demonstration, which know nothing of Nessie: how they are started, and what their lines tell."""
import re
from dataclasses import dataclass
from typing import Callable

BLOCK_MIB = 10 * 32**3 * 8 / 2**20      # what a process has in a checkpoint of the flow
CHECKPOINT_LINE = re.compile(r"^step +(\d+) .* checkpoint +([\d.]+) s")
RESULT_LINE = re.compile(r"^result .*\bio_s=([\d.]+)")
FEW_VARIABLES = ("--columns", 60, "--surface", 20, "--profiles", 10, "--scalars", 3, "--fixed", 2)


@dataclass(frozen=True)
class Program:
    name: str
    executable: str     # below the build folder
    arguments: tuple    # without the one that names the files
    probe: tuple        # a short run's, to find the faster MPI-IO
    files: int
    mib: float          # of all files together
    wrote: Callable     # of a line of output that tells a file's end: its name's part behind the prefix, and its seconds
    does: str


def flow(options):
    def arguments(checkpoints):
        return "--steps", checkpoints * options.interval, "--interval", options.interval

    def wrote(line):
        match = CHECKPOINT_LINE.match(line)
        return match and (f".{int(match[1]):04d}.nc", float(match[2]))

    size = options.processes * BLOCK_MIB
    return Program("reacting flow", "examples/reaction_diffusion", arguments(options.checkpoints),
                   arguments(min(4, options.checkpoints)), options.checkpoints, size * options.checkpoints, wrote,
                   f"{options.processes} processes write {options.checkpoints} checkpoints of {size:.0f} MiB, "
                   "a 3-D block of each field")


def climate(options):
    def wrote(line):
        match = RESULT_LINE.match(line)
        return match and (".e3sm.0000.nc", float(match[1]))

    arguments = FEW_VARIABLES if options.quick else ()
    variables, mib = (35, 0.2) if options.quick else (1100, 38)
    return Program("climate", "bin/nessie-bench-climate", arguments, arguments, 1, mib, wrote,
                   f"{options.processes} processes write {variables:,} variables, {5 * variables:,} attributes and two records "
                   f"into a file of {mib:g} MiB, in runs of 1 to 30 values")


def programs(options):
    return flow(options), climate(options)
