# SPDX-License-Identifier: BSD-3-Clause
"""Streams in Python, as `nessie bench streams-pair` asks for them, and asks others (adios2_sst.py). The question is JSON: where
the server is, which size, and how many steps; {}: nothing is done, but that the package is there. Prints how many microseconds
a step takes at the reader, as streams_pair.cpp counts."""
import time

import numpy

from nessie import streams
from streams_pair import check_step, run_pair

TIMEOUT_S = 60


def write(at, count, steps, _depth):
    array = numpy.ones(count)
    with streams.Writer("bench", at=at, await_readers=1, timeout=TIMEOUT_S) as out:
        out.define("x", (count,), "f8")
        for step in range(steps):
            array[0] = array[-1] = step
            with out.step():
                out.put("x", array)


def read(at, count, _steps, _depth):
    array = numpy.zeros(count)
    ends = []
    with streams.Reader("bench", at=at, timeout=TIMEOUT_S) as steps:
        for step in steps:
            step["x"].get(out=array)
            check_step(array, step.number)
            ends.append(time.perf_counter())
    return ends


if __name__ == "__main__":
    run_pair(write, read)
