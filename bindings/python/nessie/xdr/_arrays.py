# SPDX-License-Identifier: BSD-3-Clause
"""Several values of one type, or one that may be absent."""
from __future__ import annotations

from typing import Any, Callable, TypeAlias

import numpy

from nessie import _core
from nessie._elements import fitted
from nessie.errors import InvalidArgument
from nessie.xdr._bytes import check_size
from nessie.xdr._reader import COUNT, UNBOUNDED, Codec, Reader, codec_of
from nessie.xdr._words import Number, Void

#: What arrays of numbers are. When they were decoded they are of exactly the interface's type.
Numbers: TypeAlias = numpy.ndarray[Any, numpy.dtype[Any]]


def _as_array(value: Any, dtype: numpy.dtype[Any]) -> Numbers:
    """One dimension, of that type; what does not fit is InvalidArgument."""
    array = numpy.asarray(value)
    if array.ndim != 1:
        raise InvalidArgument(f"an array of {array.ndim} dimensions where there is one")
    return numpy.ascontiguousarray(fitted(array, dtype))


def _put_numbers(out: bytearray, array: Numbers) -> None:
    if array.size:
        at = len(out)
        out.extend(bytes(array.nbytes))
        _core.swap_copy(out, at, array, 0, array.nbytes, array.itemsize)


def _get_numbers(reader: Reader, count: int, dtype: numpy.dtype[Any]) -> Numbers:
    size = count * dtype.itemsize
    if reader.left() < size:
        raise reader.fail("the message ends within a number")
    array = numpy.empty(count, dtype)
    if count:
        _core.swap_copy(array, 0, reader.data, reader.at, size, dtype.itemsize)
        reader.at += size
    return array


class Array(Codec):
    """T[size]: a numpy array of numbers, a list of others."""

    element: Any

    def __new__(cls, element: Any, size: int) -> Array:
        return super().__new__(_NumberArray if isinstance(element, Number) else cls)

    def __init__(self, element: Any, size: int):
        self.element, self.size = codec_of(element), size

    def put(self, out: bytearray, value: Any) -> None:
        self._check(len(value))
        put = self.element.put
        for each in value:
            put(out, each)

    def _check(self, size: int) -> None:
        if size != self.size:
            raise InvalidArgument(f"{size} elements where there are {self.size}")

    def get(self, reader: Reader) -> Any:
        get = self.element.get
        return [get(reader) for _ in range(self.size)]

    def default(self) -> Any:
        return [self.element.default() for _ in range(self.size)]


class _NumberArray(Array):
    def put(self, out: bytearray, value: Any) -> None:
        array = _as_array(value, self.element.dtype)
        self._check(array.size)
        _put_numbers(out, array)

    def get(self, reader: Reader) -> Any:
        return _get_numbers(reader, self.size, self.element.dtype)

    def default(self) -> Any:
        return numpy.zeros(self.size, self.element.dtype)


class Vector(Codec):
    """T<most>: a numpy array of numbers, a list of others."""

    element: Any

    def __new__(cls, element: Any, most: int = UNBOUNDED) -> Vector:
        return super().__new__(_NumberVector if isinstance(element, Number) else cls)

    def __init__(self, element: Any, most: int = UNBOUNDED):
        self.element, self.most = codec_of(element), most

    def put(self, out: bytearray, value: Any) -> None:
        check_size(len(value), self.most)
        out += COUNT.pack(len(value))
        put = self.element.put
        for each in value:
            put(out, each)

    def get(self, reader: Reader) -> Any:
        count = reader.count(self.most, 4)
        rows = self.element.get_all(reader, count) if hasattr(self.element, "get_all") else None
        if rows is not None:
            return rows
        get = self.element.get
        return [get(reader) for _ in range(count)]

    def default(self) -> Any:
        return []


class _NumberVector(Vector):
    def put(self, out: bytearray, value: Any) -> None:
        array = _as_array(value, self.element.dtype)
        check_size(array.size, self.most)
        out += COUNT.pack(array.size)
        _put_numbers(out, array)

    def get(self, reader: Reader) -> Any:
        return _get_numbers(reader, reader.count(self.most, self.element.least_bytes), self.element.dtype)

    def default(self) -> Any:
        return numpy.empty(0, self.element.dtype)


class Optional(Codec):
    """T *: None, or a value. One that may be None itself is in a tuple of its own: (None,)."""

    def __init__(self, element: Any):
        self.element = codec_of(element)
        self.nests = isinstance(self.element, (Optional, Void))

    def put(self, out: bytearray, value: Any) -> None:
        out += COUNT.pack(value is not None)
        if value is not None:
            self.element.put(out, value[0] if self.nests else value)

    def get(self, reader: Reader) -> Any:
        if not reader.flag():
            return None
        value = self.element.get(reader)
        return (value,) if self.nests else value

    def default(self) -> Any:
        return None


class Ref(Codec):
    """A type that is defined further below: `find` is asked at the first use."""

    def __init__(self, find: Callable[[], Any]):
        self._find = find

    def __getattr__(self, name: str) -> Any:
        if name != "codec":
            raise AttributeError(name)
        self.codec = codec_of(self._find())
        return self.codec

    def put(self, out: bytearray, value: Any) -> None:
        self.codec.put(out, value)

    def get(self, reader: Reader) -> Any:
        return self.codec.get(reader)

    def default(self) -> Any:
        return self.codec.default()
