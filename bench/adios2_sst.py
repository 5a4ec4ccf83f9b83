# SPDX-License-Identifier: BSD-3-Clause
"""ADIOS2's SST engine, as `nessie bench streams-pair` asks for it: one process writes steps of one array, another one reads
all of it. The question is JSON: which size, and how many steps; {}: nothing is done, but that the module is there. Prints how
many microseconds a step takes at the reader, as streams_pair.cpp counts.

The wheel on PyPI (`pip install adios2`) is serial, and has one data plane, WAN, over sockets. The rest is what its
documentation says is fast for one reader that wants all: BP5 marshals, and a writer sends a step before it is asked for it
(SpeculativePreloadMode). So many steps wait (QueueLimit), then the writer does: none is discarded, and the queue does not
grow."""
import time

import adios2
import numpy

from streams_pair import check_step, run_pair

PARAMETERS = {
    "DataTransport": "WAN",
    "MarshalMethod": "BP5",
    "QueueFullPolicy": "Block",
    "RendezvousReaderCount": "1",
    "SpeculativePreloadMode": "ON",
    "OpenTimeoutSecs": "60",
    "NetworkInterface": "lo",
}


def declare(depth):
    io = adios2.Adios().declare_io("pair")
    io.set_engine("SST")
    io.set_parameters({**PARAMETERS, "QueueLimit": str(depth)})
    return io


def write(stream, count, steps, depth):
    io = declare(depth)
    array = numpy.ones(count)
    variable = io.define_variable("x", array, [count], [0], [count], True)
    engine = io.open(stream, adios2.bindings.Mode.Write)
    for step in range(steps):
        array[0] = array[-1] = step
        engine.begin_step()
        engine.put(variable, array)
        engine.end_step()
    engine.close()


def read(stream, count, steps, depth):
    io = declare(depth)
    array = numpy.zeros(count)
    engine = io.open(stream, adios2.bindings.Mode.Read)
    ends = []
    while engine.begin_step() == adios2.bindings.StepStatus.OK:
        engine.get(io.inquire_variable("x"), array, adios2.bindings.Mode.Deferred)
        engine.end_step()
        check_step(array, len(ends))
        ends.append(time.perf_counter())
    engine.close()
    return ends


if __name__ == "__main__":
    run_pair(write, read)
