# SPDX-License-Identifier: BSD-3-Clause
"""Writes a value of drawing.x as bytes (XDR, RFC 4506), which are the same in every language, and reads it again.

    $ nessie idl --language python --out build drawing.x
    $ PYTHONPATH=build:$PYTHONPATH /usr/bin/python3 draw.py
    00000003 74776F00 00000001 00000001 00000002 00000001 3FE00000 00000000
    00000001 00000000 00000000 00000002 00000002 68690000 00000000
    two: a circle of radius 0.5 at (1, 2), hi at (0, 0)
    cut off: refused
"""
from drawing import drawing, element, kind, point, shape
from nessie import BadMessage


def print_hexadecimal(data):
    for at in range(0, len(data), 32):
        print(data[at:at + 32].hex(" ", -4).upper())


def in_words(it):
    what = f"a circle of radius {it.what.radius}" if it.what.is_ == kind.CIRCLE else it.what.text
    return f"{what} at ({it.at.x}, {it.at.y})"


def elements_of(it):
    element = it.first
    while element is not None:
        yield element
        element = element.next


label = element(point(0, 0), shape(kind.LABEL, "hi"), None)
circle = element(point(1, 2), shape(kind.CIRCLE, 0.5), label)
data = drawing("two", circle).encode()   # an error where a value breaks a rule of the interface
print_hexadecimal(data)

copy = drawing.decode(data)
print(f"{copy.title}: {', '.join(in_words(it) for it in elements_of(copy))}")

try:
    drawing.decode(data[:-4])   # whatever is wrong with bytes from elsewhere, it is told
except BadMessage:
    print("cut off: refused")
