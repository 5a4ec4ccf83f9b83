# SPDX-License-Identifier: BSD-3-Clause
"""Serves arrays.x until it is killed. The array may be larger than this process's memory: it is pulled and pushed a piece
at a time. client.py has the commands."""
import numpy

import arrays
from nessie import nssi

PIECE = 65536   # elements


class Arrays(arrays.ARRAYS.ONE.Server):
    def SCALE(self, request, factor):
        memory = numpy.empty(PIECE)
        total = 0.0
        for at in range(0, request.data_bytes, memory.nbytes):
            piece = memory[: (request.data_bytes - at) // 8]
            request.get_data(piece, at)
            piece *= factor
            total += piece.sum()
            request.put_data(piece, at)
        return total


with nssi.Runtime.open() as runtime:
    Arrays().add_to(runtime)
    runtime.announce("file:bulk.contact")
    runtime.run()
