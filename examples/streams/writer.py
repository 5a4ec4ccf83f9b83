# SPDX-License-Identifier: BSD-3-Clause
"""Writes a stream: in each step an array, of which its readers, in any language, take what they want. See reader.py."""
import numpy

from nessie import streams

NY, NX = 48, 64
y, x = numpy.indices((NY, NX))

with streams.Writer("flow") as out:
    out.define("T", (NY, NX), float, attributes={"units": "K"})
    for _ in range(3):
        with out.step(timeout=60) as number:   # waits until the servers have room
            out.put("T", 100.0 * number + y + 0.01 * x)   # of several ranks, each puts its boxes
