# SPDX-License-Identifier: BSD-3-Clause
"""Reads all steps of a stream: of each a box, and what the servers compute of it all.

    $ nessie-streams > streams.url &
    $ /usr/bin/python3 writer.py &
    $ /usr/bin/python3 reader.py
    step 0: the mean of the box is 11.215 K, the maximum of all 47.63 K
    step 1: the mean of the box is 111.215 K, the maximum of all 147.63 K
    step 2: the mean of the box is 211.215 K, the maximum of all 247.63 K
    $ kill %1; wait
"""
from nessie import streams

with streams.Reader("flow") as steps:
    for step in steps:
        field = step["T"]
        units = field.attributes["units"]
        box = field[10:13, 20:24]   # nothing else of the array comes here
        print(f"step {step.number}: the mean of the box is {box.mean():.3f} {units}, ", end="")
        print(f"the maximum of all {field.figures().maximum:.2f} {units}")
