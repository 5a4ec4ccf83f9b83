# SPDX-License-Identifier: BSD-3-Clause
"""Calls roots.x: one result, one error that the service tells, one deadline that passes.

    $ nessie idl --language python --out build roots.x
    $ export PYTHONPATH=build:$PYTHONPATH
    $ /usr/bin/python3 server.py &
    $ /usr/bin/python3 client.py
    the root of 2 is 1.414
    refused: no root of a negative number: take its absolute
    the root of 1 is 1.000
    no answer within 100 ms
    $ kill %1; rm rpc.contact
"""
import roots
from nessie import InvalidArgument, TimedOut, nssi


def print_root(service, number):
    """Prints the root of a number, or of its absolute if the service refuses it."""
    try:
        print(f"the root of {number} is {service.ROOT(number, 0):.3f}")
    except InvalidArgument as error:
        print(f"refused: {error}")
        print_root(service, abs(number))


with nssi.Runtime.open(listen=False) as runtime:
    service = roots.ROOTS.ONE.Client(runtime, runtime.connect_to("file:rpc.contact", timeout=10))
    print_root(service, 2)
    print_root(service, -1)
    try:
        service.ROOT(3, 10_000, timeout=0.1)   # 30 s if none is given
    except TimedOut:
        print("no answer within 100 ms")
