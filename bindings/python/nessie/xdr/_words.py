# SPDX-License-Identifier: BSD-3-Clause
"""Numbers, bools, enums, and nothing."""
from __future__ import annotations

import enum
import struct
from typing import Any, Type, TypeVar

import numpy

from nessie.errors import InvalidArgument
from nessie.xdr._reader import COUNT, Codec, Reader

E = TypeVar("E", bound=enum.IntEnum)


class Number(Codec):
    def __init__(self, letter: str, dtype: str):
        self.letter = letter
        self.layout = struct.Struct(">" + letter)
        self.dtype = numpy.dtype(dtype)
        self.least_bytes = self.layout.size
        self._zero = 0.0 if self.dtype.kind == "f" else 0

    def put(self, out: bytearray, value: Any) -> None:
        out += self.layout.pack(value)

    def get(self, reader: Reader) -> Any:
        return reader.unpack(self.layout)[0]

    def default(self) -> Any:
        return self._zero


INT = Number("i", "int32")
UNSIGNED = Number("I", "uint32")
HYPER = Number("q", "int64")
UNSIGNED_HYPER = Number("Q", "uint64")
FLOAT = Number("f", "float32")
DOUBLE = Number("d", "float64")


class Bool(Codec):
    def put(self, out: bytearray, value: Any) -> None:
        if value not in (False, True):
            raise InvalidArgument(f"a bool is False or True, not {value!r}")
        out += COUNT.pack(bool(value))

    def get(self, reader: Reader) -> Any:
        return reader.flag()

    def default(self) -> Any:
        return False


class Void(Codec):
    def put(self, out: bytearray, value: Any) -> None:
        if value is not None:
            raise InvalidArgument("a union holds another arm than it says")

    def get(self, reader: Reader) -> Any:
        return None

    def default(self) -> Any:
        return None


BOOL = Bool()
VOID = Void()


class Enum(Codec):
    """Of an enum.IntEnum. A field that has not been set is 0 if that has a name; None, which cannot be encoded, if not."""

    def __init__(self, kind: Type[enum.IntEnum]):
        self.kind = kind
        self.members = {int(member): member for member in kind}

    def put(self, out: bytearray, value: Any) -> None:
        if value not in self.members:
            raise InvalidArgument(f"an enum has a value without a name: {value!r} is none of {self.kind.__name__}")
        out += INT.layout.pack(value)

    def get(self, reader: Reader) -> Any:
        value = self.members.get(INT.get(reader))
        if value is None:
            raise reader.fail("an enum has a value without a name")
        return value

    def default(self) -> Any:
        return self.members.get(0)


def named(kind: Type[E]) -> Type[E]:
    """Gives an enum its codec."""
    setattr(kind, "xdr", Enum(kind))
    return kind
