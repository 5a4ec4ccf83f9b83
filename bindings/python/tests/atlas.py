# SPDX-License-Identifier: BSD-3-Clause
"""The service of stub_test.x in Python. As a program: prints its URL and serves until it is told to end."""
import sys
import threading

import numpy
import stub_test

import nessie
from nessie import nssi, stub

FIRST = stub_test.ATLAS.FIRST


class Atlas(FIRST.Server):
    @stub.short
    def NOTHING(self, request):
        pass

    def ADD(self, request, a, b):
        return a + b

    def GREET(self, request, name):
        return "hello " + name

    def MIRROR(self, request, at):
        return stub_test.point(-at.x, -at.y)

    def WALK(self, request, start, steps):
        return [stub_test.point(start.x + i, start.y) for i in range(steps)]

    def FIND(self, request, color):
        is_here = color == stub_test.color.RED
        return stub_test.found(is_here, stub_test.point(1, 2) if is_here else None)

    def ECHO(self, request, data):
        return data

    def SUM(self, request):
        data = numpy.empty(request.data_bytes, "uint8")
        request.get_data(data)
        return int(data.sum())

    def FILL(self, request, value):
        request.put_data(numpy.full(request.data_bytes, value, "uint8"))

    def NEGATE(self, request):
        data = numpy.empty(request.data_bytes, "uint8")
        half = len(data) // 2
        request.get_data(data[:half])
        request.get_data(data[half:], half)
        request.put_data(~data)

    def BURN(self, request):
        raise RuntimeError("the roof is on fire")

    @stub.short
    def SHORT(self, request, value):
        return value

    def REFUSE(self, request, cause):
        raise nessie.Io("No space left on device: free some", scope=nessie.Scope.SERVICE, cause=cause)


class Serving:
    """A runtime that serves on a thread of its own."""

    def __init__(self, *servers, **options):
        self.runtime = nssi.Runtime.open(transports=["shm"], **options)
        for server in servers:
            server.add_to(self.runtime)
        self._thread = threading.Thread(target=self.runtime.run)
        self._thread.start()

    def __enter__(self):
        return self.runtime

    def __exit__(self, *_):
        self.runtime.stop()
        self._thread.join()
        self.runtime.close()


def main():
    with nssi.Runtime.open(transports=["shm"]) as runtime:
        Atlas().add_to(runtime)
        print(runtime.url, flush=True)
        try:
            runtime.run()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
