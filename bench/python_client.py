# SPDX-License-Identifier: BSD-3-Clause
"""The client in Python of `nessie bench rpc-python`, which says as JSON where the service is and what to call. Prints, as a
JSON array, how many microseconds each of the calls takes: the median of the means of ten batches."""
import json
import mmap
import statistics
import sys
import time

import numpy

from nessie import nssi
from rpc import BENCH

BATCHES = 10
WARM_UP_S = 0.1


def typical_us(calls, call):
    """As typical_us() of timing.hpp does."""
    warm_up_ends = time.perf_counter() + WARM_UP_S
    made = 0
    while made == 0 or (made < calls and time.perf_counter() < warm_up_ends):
        call()
        made += 1
    means = []
    for _ in range(BATCHES):
        begin = time.perf_counter()
        for _ in range(made):
            call()
        means.append((time.perf_counter() - begin) / made * 1e6)
    return statistics.median(means)


def call_of(service, buffer, procedure, size_bytes):
    method = getattr(service, procedure)
    return (lambda: method(size_bytes, buffer)) if size_bytes else method


def page_aligned(size_bytes):
    """What is transferred begins where a page begins, as page_aligned.hpp has it."""
    memory = numpy.ones(size_bytes + mmap.PAGESIZE, "uint8")
    begin = -memory.ctypes.data % mmap.PAGESIZE
    return memory[begin:begin + size_bytes]


def main():
    question = json.loads(sys.argv[1])
    with nssi.Runtime.open(transports=[question["transport"]], listen=False, settings=question["settings"]) as runtime:
        service = BENCH.ONE.Client(runtime, runtime.connect(question["url"]))
        memory = page_aligned(max(1, *(each["size_bytes"] for each in question["calls"])))
        buffer = runtime.register(memory, nssi.Rights.READ_WRITE)
        print(json.dumps([typical_us(each["calls"], call_of(service, buffer, each["procedure"], each["size_bytes"]))
                          for each in question["calls"]]))


if __name__ == "__main__":
    main()
