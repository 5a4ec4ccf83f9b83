# SPDX-License-Identifier: BSD-3-Clause
"""How much longer than in C++ a call takes from Python, to the same service in C++, over shm: an empty one, and one that fills
16 MiB of an array. In a build: PYTHONPATH=lib/python:… NESSIE_TEST_PROGRAMS=tests python3 measure.py (see CMakeLists.txt)."""
import subprocess
import sys
import time

import numpy
from atlas import FIRST
from support import program

from nessie import nssi

PEER = program("nessie_python_atlas_peer")
SIZE = 16 << 20


def microseconds(rounds, calls, call):
    """Of the fastest of some rounds."""
    least = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        least = min(least, (time.perf_counter() - begin) / calls * 1e6)
    return least


def from_cpp(url):
    return tuple(map(float, subprocess.run([PEER, "measure", url], capture_output=True, check=True, timeout=300).stdout.split()))


def from_python(url):
    with nssi.Runtime.open(transports=["shm"], listen=False) as runtime:
        atlas = FIRST.Client(runtime, runtime.connect(url))
        buffer = runtime.register(numpy.zeros(SIZE, "uint8"), nssi.Rights.READ_WRITE)
        return microseconds(20, 2000, atlas.NOTHING), microseconds(20, 5, lambda: atlas.FILL(3, buffer))


def main():
    server = subprocess.Popen([PEER, "serve"], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip()
        for what, cpp, python in zip(("empty call", "16 MiB"), from_cpp(url), from_python(url)):
            print(f"{what}: C++ {cpp:.2f} us, Python {python:.2f} us: {python / cpp:.2f} x")
    finally:
        server.kill()
        server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
