# SPDX-License-Identifier: BSD-3-Clause
"""Lends the service of arrays.x an array, which it pulls and pushes as it likes until the call is over.

    $ nessie idl --language python --out build arrays.x
    $ export PYTHONPATH=build:$PYTHONPATH
    $ /usr/bin/python3 server.py &
    $ /usr/bin/python3 client.py
    1000000 elements, their sum 250000250000.0
    the first is 0.5, the last 500000.0
    $ kill %1; rm bulk.contact
"""
import numpy

import arrays
from nessie import nssi

with nssi.Runtime.open(listen=False) as runtime:
    service = arrays.ARRAYS.ONE.Client(runtime, runtime.connect_to("file:bulk.contact", timeout=10))
    array = numpy.arange(1.0, 1_000_001.0)
    # Nobody reaches it without the description in the request, nor beyond its bounds, nor against its rights.
    lent = runtime.register(array, nssi.Rights.READ_WRITE)
    total = service.SCALE(0.5, lent)
    print(f"{array.size} elements, their sum {total:.1f}")
    print(f"the first is {array[0]:.1f}, the last {array[-1]:.1f}")
