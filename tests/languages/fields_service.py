# SPDX-License-Identifier: BSD-3-Clause
"""The service of fields.x in Python."""
import time

import fields
import numpy

import nessie
from nessie import stub

ONE, TWO = fields.FIELDS.ONE, fields.FIELDS.TWO


def pull(request):
    """All of the caller's data, one half after the other."""
    field = numpy.empty(request.data_bytes // 8)
    half = len(field) // 2
    request.get_data(field[:half])
    request.get_data(field[half:], 8 * half)
    return field


def turned(tree):
    return fields.tree(tree.value, [turned(child) for child in reversed(tree.children)])


class Fields(ONE.Server):
    def NOTHING(self, request):
        pass

    @stub.short
    def ADD(self, request, a, b):
        return a + b

    def MEASURE(self, request):
        field = pull(request)
        return fields.moments(float(field.sum()), float(field.min()), float(field.max()))

    def SCALE(self, request, factor):
        request.put_data(pull(request) * factor)

    def RAMP(self, request, along):
        request.put_data(numpy.arange(1.0, request.data_bytes // 8 + 1) * along)

    def GREET(self, request, name, title):
        return f"hello {name}, {title}"

    def BLEND(self, request, weights, factor):
        return weights * factor

    def FIND(self, request, stamp, is_here):
        return fields.found(is_here, stamp if is_here else None)

    def REVERSE(self, request, route):
        made = None
        while route is not None:
            made, route = fields.stop(route.place, made), route.next
        return made

    def MIRROR(self, request, tree):
        return turned(tree)

    def HALF(self, request, number):
        return None if number is None else int(number / 2)

    def ECHO(self, request, octets):
        return octets

    def PICK(self, request, titles, axes):
        return [titles[axis - 1] for axis in axes]

    def SHIFT(self, request, history, by):
        return [fields.moments(each.sum, each.least + by, each.greatest + by) for each in history]

    def REST(self, request, time_ms):
        time.sleep(time_ms / 1000)
        return time_ms

    def REFUSE(self, request, cause):
        raise nessie.Io("No space left on device: free some", scope=nessie.Scope.SERVICE, cause=cause)

    def REPEAT(self, request, title, times):
        return title * times


class Second(TWO.Server):
    def ADD(self, request, a, b, c):
        return a + b + c
