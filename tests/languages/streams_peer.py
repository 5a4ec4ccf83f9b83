# SPDX-License-Identifier: BSD-3-Clause
"""What every language writes to a stream, and reads of it, in Python. README.md."""
import sys

import numpy

import nessie
from nessie import streams

STEPS = 3
TYPES = {"int8": 1, "int16": 3, "int32": 4, "float32": 5, "float64": 6, "uint8": 7, "uint16": 8, "uint32": 9, "int64": 10,
         "uint64": 11}
NAMES = {"float32": "t_float", "float64": "t_double"}
faults = []


def expect(is_so, what, step):
    if not is_so:
        print(f"step {step}: not so: {what}")
        faults.append(what)


def table(dtype, step):
    return (20 * step + TYPES[dtype] + numpy.arange(12).reshape(3, 4)).astype(dtype)


def grid(step):
    i, j, k = numpy.indices((4, 5, 6))
    return 1000.0 * step + 100 * i + 10 * j + k


def name_of(dtype):
    return NAMES.get(dtype, "t_" + dtype)


def describe(out):
    for dtype in TYPES:
        out.define(name_of(dtype), (3, 4), dtype)
    out.define("grid", (4, 5, 6), float, attributes={"units": "K", "range": [0.0, 3999.0]})
    out.define("time")
    out.define("names", (2, 6), "S1")
    out.define("mask", 4, "i4", constant=True)
    out.define("partial", 6, "f4", fill=-1)
    out.set_attribute("title", "of every language")
    out.set_attribute("number", numpy.int32(42))


def write_step(out, step):
    with out.step() as number:
        expect(number == step, "the step's number", step)
        out.define("growing", step + 1, "i8")
        for dtype in TYPES:
            out.put(name_of(dtype), table(dtype, step))
        values = grid(step)
        out.span("grid", (0, 0, 0), (1, 5, 6))[...] = values[:1]
        out.put("grid", values[1, :, ::2][None, :, :1], (1, 0, 0))   # a section
        out.put("grid", numpy.asfortranarray(values[1:2, :, 1:]), (1, 0, 1))
        out.put_lent("grid", values[2:], (2, 0, 0))
        out.put("time", 0.5 * step)
        out.put("names", ["first ", "second"])
        if step == 0:
            out.put("mask", [1, 2, 3, 4])
        out.put("partial", [7, 8], (2,))
        out.put("growing", range(step + 1))


def write_stream(name):
    with streams.Writer(name) as out:
        describe(out)
        for step in range(STEPS):
            write_step(out, step)
    expect(out.is_closed, "closed", STEPS)


def refuses(error, act):
    try:
        act()
    except error:
        return True
    return False


def check_grid(step, it):
    wanted = grid(step)
    expect((it[...] == wanted).all() and it.dtype == float, "grid", step)
    expect((numpy.asarray(it) == wanted).all(), "grid as an array", step)
    for key in (0, -1, (1, 2, 3), slice(1, 3), (Ellipsis, 2), (slice(None), slice(1, None, 2), 5),
                (slice(None, None, -1), 0), (slice(3, 3),), (2, Ellipsis, slice(4, 0, -3))):
        got = it[key]
        expect(got.shape == wanted[key].shape and (got == wanted[key]).all(), f"grid[{key}]", step)
    into = numpy.zeros((2, 2, 2), order="F")
    expect(it.get((1, 2, 3), out=into) is into and (into == wanted[1:3, 2:4, 3:5]).all(), "a box in Fortran's order", step)
    figures = it.figures()
    expect((figures.minimum, figures.maximum, figures.elements) == (wanted.min(), wanted.max(), 120), "figures", step)
    expect(refuses(IndexError, lambda: it[4]) and refuses(IndexError, lambda: it[0, 0, 0, 0]), "indices outside", step)
    expect(refuses(nessie.OutOfRange, lambda: it.get((1, 0, 0), (4, 1, 1))), "a box outside", step)


def check_step(number, step):
    expect(step.number == number and step.missed == 0, "the step's number", number)
    expect(len(step) == 16 and "nothing" not in step, "the variables", number)
    expect(step.attributes == {"title": "of every language", "number": 42}, "the attributes", number)
    units, limits = step["grid"].attributes["units"], step["grid"].attributes["range"]
    expect(units == "K" and list(limits) == [0, 3999], "the attributes of grid", number)
    expect(step["partial"].variable == streams.Variable("partial", numpy.dtype("f4"), (6,), -1), "partial", number)
    expect(step["mask"].variable.constant and list(step["mask"][:]) == [1, 2, 3, 4], "mask", number)
    for dtype in TYPES:
        got = step[name_of(dtype)][...]
        expect(got.dtype == dtype and (got == table(dtype, number)).all(), dtype, number)
    check_grid(number, step["grid"])
    expect(step["time"][()] == 0.5 * number, "time", number)
    expect(step["names"][...].tobytes() == b"first second", "names", number)
    expect(list(step["partial"][...]) == [-1, -1, 7, 8, -1, -1], "partial", number)
    expect(list(step["growing"][...]) == list(range(number + 1)), "growing", number)


def read_stream(name):
    number = -1
    with streams.Reader(name) as steps:
        for number, step in enumerate(steps):
            check_step(number, step)
    expect(number == STEPS - 1, "the number of steps", number)


if __name__ == "__main__":
    if sys.argv[1] != "read":
        write_stream(sys.argv[2])
    if sys.argv[1] != "write":
        read_stream(sys.argv[2])
    print(f"{len(faults)} faults")
    sys.exit(bool(faults))
