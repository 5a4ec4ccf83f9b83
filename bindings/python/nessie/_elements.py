# SPDX-License-Identifier: BSD-3-Clause
"""Numbers and texts as elements of arrays: which types there are, and what fits them."""
from __future__ import annotations

from typing import Any, Optional, TypeAlias

import numpy

from nessie.errors import InvalidArgument

Array: TypeAlias = numpy.ndarray[Any, numpy.dtype[Any]]
Dtype: TypeAlias = numpy.dtype[Any]

#: By the numbers of nessie::streams::Type. CHAR is text, in bytes.
DTYPES: dict[int, Dtype] = {
    number: numpy.dtype(name)
    for number, name in enumerate(("i1", "S1", "i2", "i4", "f4", "f8", "u1", "u2", "u4", "i8", "u8"), start=1)
}
TEXT = DTYPES[2]


def type_of(dtype: Any) -> int:
    """The number of a type of numpy's; InvalidArgument: there is no such type of elements."""
    wanted = numpy.dtype(dtype).newbyteorder("=")
    if wanted.kind == "S":
        return 2
    for number, each in DTYPES.items():
        if each == wanted:
            return number
    raise InvalidArgument(f"there are no elements of type {wanted}: use one of int8 to uint64, float32, float64 or S1")


def fitted(value: Any, dtype: Dtype) -> Array:
    """An array of exactly that type of numbers: floats are rounded; what does not fit is InvalidArgument."""
    array = numpy.asarray(value)
    if array.dtype == dtype or array.size == 0:
        return array.astype(dtype, copy=False)
    if array.dtype.kind not in ("iu" if dtype.kind in "iu" else "iuf"):
        raise InvalidArgument(f"an array of {array.dtype} where there is one of {dtype}")
    if dtype.kind in "iu":
        limits = numpy.iinfo(dtype)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise InvalidArgument(f"a number does not fit {dtype}")
    try:
        with numpy.errstate(over="raise"):
            return array.astype(dtype)
    except FloatingPointError as fault:
        raise InvalidArgument(f"a number does not fit {dtype}") from fault


def characters(value: Any) -> Array:
    """A text, or an array of texts, as characters; of texts of several their number is the last dimension."""
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    if isinstance(value, bytes):
        return numpy.frombuffer(value, TEXT)
    array = numpy.asarray(value)
    if array.dtype.kind == "U":
        array = numpy.char.encode(array, "utf-8")
    if array.dtype.kind != "S":
        raise InvalidArgument(f"an array of {array.dtype} where there is text")
    if array.dtype.itemsize == 1:
        return array
    return numpy.ascontiguousarray(array).view(TEXT).reshape(*array.shape, array.dtype.itemsize)


def elements(value: Any, dtype: Dtype) -> Array:
    """`value` as elements of that type."""
    return characters(value) if dtype == TEXT else fitted(value, dtype)


def raw_attribute(value: Any) -> tuple[int, bytes]:
    """The type, and the bytes, of a text, a number or several."""
    if isinstance(value, str):
        return 2, value.encode("utf-8", "surrogateescape")
    if isinstance(value, bytes):
        return 2, value
    array = numpy.asarray(value)
    return type_of(array.dtype), array.astype(array.dtype.newbyteorder("="), copy=False).tobytes()


def attribute_of(number: int, raw: bytes) -> Any:
    """A text, a number, or an array of numbers."""
    if number == 2:
        return raw.decode("utf-8", "surrogateescape")
    array = numpy.frombuffer(raw, DTYPES[number])
    return array[0] if array.size == 1 else array


def scalar_of(raw: bytes, dtype: Dtype) -> Optional[Any]:
    """The one element; None: there is none."""
    return numpy.frombuffer(raw, dtype)[0] if raw else None
