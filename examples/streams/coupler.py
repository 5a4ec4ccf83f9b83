# SPDX-License-Identifier: BSD-3-Clause
"""Looks at two codes that are coupled, core.c and edge.f90, and writes what flows between them as a third stream.

    $ nessie-streams > streams.url &
    $ mpiexec --oversubscribe -n 3 build/streams_core > core.out &
    $ mpiexec --oversubscribe -n 2 build/streams_edge > edge.out &
    $ /usr/bin/python3 coupler.py
    step 0: 8.875 flow outwards, most at angle 23
    step 1: 4.438 flow outwards, most at angle 23
    step 2: 3.328 flow outwards, most at angle 23
    step 3: 2.773 flow outwards, most at angle 23
    step 4: 2.427 flow outwards, most at angle 23
    $ wait %2 %3; cat core.out edge.out
    core has 546.159
    edge has 21.841
    $ kill %1; wait

The two exchange their borders by a stream each, at different numbers of ranks. Each waits, before its first step, for two
groups of readers: the other one, and this service, which so sees every step.
"""
from nessie import streams

with streams.Reader("core", timeout=60) as core, streams.Reader("edge", timeout=60) as edge:
    with streams.Writer("flux", timeout=60) as out:
        for inner, outer in zip(core, edge, strict=True):
            border = inner["border"]
            flux = 0.25 * (border[:] - outer["border"][:])
            out.define("flux", border.shape, border.dtype)
            with out.step():
                out.put("flux", flux)
            print(f"step {inner.number}: {flux.sum():.3f} flow outwards, most at angle {flux.argmax()}")
