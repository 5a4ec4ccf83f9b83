# SPDX-License-Identifier: BSD-3-Clause
"""Counts with the service of job.toml: counter.cpp, beside Nessie's own staging.

    $ nessie idl --language python --out build counter.x
    $ nessied --config job.toml > nessied.url &
    $ PYTHONPATH=build:$PYTHONPATH /usr/bin/python3 client.py
    42
    nobody has counted pears
    $ kill %1; wait
"""
import counter
from nessie import NotFound, nssi

with nssi.Runtime.open(listen=False) as runtime:
    counters = counter.COUNTER.ONE.Client(runtime, runtime.connect_to("file:job.contact", timeout=10))
    print(counters.ADD("apples", 2))
    try:
        print(counters.VALUE("pears"))
    except NotFound as error:
        print(error)
