# SPDX-License-Identifier: BSD-3-Clause
"""Serves roots.x until it is killed. client.py has the commands."""
import math
import time

import roots
from nessie import InvalidArgument, nssi


class Roots(roots.ROOTS.ONE.Server):
    def ROOT(self, request, number, after_ms):
        """Each request has a thread of its own: while this one sleeps, others go on."""
        if number < 0:
            raise InvalidArgument("no root of a negative number: take its absolute")
        time.sleep(after_ms / 1000)
        return math.sqrt(number)


with nssi.Runtime.open() as runtime:
    Roots().add_to(runtime)
    runtime.announce("file:rpc.contact")
    runtime.run()
