# SPDX-License-Identifier: BSD-3-Clause
"""Structs: dataclasses that encode themselves."""
from __future__ import annotations

import dataclasses
import struct
import typing
from typing import Any, Callable, ClassVar, Sequence, Type, TypeVar, dataclass_transform

import numpy

from nessie.errors import InvalidArgument
from nessie.xdr._arrays import Optional
from nessie.xdr._bytes import FixedOpaque, Opaque, String
from nessie.xdr._reader import COUNT, Codec, Reader, codec_of
from nessie.xdr._words import Bool, Enum, Number

#: Stands for what a field has at first, which its codec knows: struct() replaces it.
DEFAULT: Any = None
T = TypeVar("T")
V = TypeVar("V", bound="Value")


class Value:
    """What structs and unions can do."""

    xdr: ClassVar[Any]

    def encode(self) -> bytes:
        """InvalidArgument: it breaks a rule of its interface."""
        encoded: bytes = self.xdr.encode(self)
        return encoded

    @classmethod
    def decode(cls: Type[V], data: Any) -> V:
        """BadMessage: the bytes are not the encoding of one value."""
        decoded: V = cls.xdr.decode(data)
        return decoded


def is_same(one: Any, other: Any) -> bool:
    """==, also of arrays, and of what holds them."""
    if isinstance(one, numpy.ndarray) or isinstance(other, numpy.ndarray):
        return numpy.array_equal(one, other)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(is_same, one, other))
    return bool(one == other)


class Struct(Value):
    """Of the structs that `struct` decorates."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(is_same(getattr(self, name), getattr(other, name)) for name in self.xdr.names)


@dataclass_transform(eq_default=False)
def struct_(*codecs: Any) -> Callable[[Type[T]], Type[T]]:
    """Makes a dataclass of a class of as many annotations. Each field begins as its type's default."""
    return lambda kind: _struct_of(kind, codecs, StructCodec)


@dataclass_transform(eq_default=False)
def chain(*codecs: Any) -> Callable[[Type[T]], Type[T]]:
    """The same, of a struct whose last field is another one or None: a list, of any length, without recursion."""
    return lambda kind: _struct_of(kind, codecs, ChainCodec)


def _struct_of(kind: Type[T], codecs: Sequence[Any], make: Callable[..., Codec]) -> Type[T]:
    fields = [(name, codec_of(codec)) for name, codec in zip(kind.__dict__.get("__annotations__", ()), codecs, strict=True)]
    for name, codec in fields:
        setattr(kind, name, _field(codec))
    made = dataclasses.dataclass(eq=False)(kind)
    setattr(made, "xdr", make(made, fields))
    return made


def _field(codec: Codec) -> Any:
    if isinstance(codec, (Number, Bool, Opaque, FixedOpaque, String, Optional, Enum)):
        return dataclasses.field(default=codec.default())
    return dataclasses.field(default_factory=codec.default)


class _Run:
    """Numbers that follow each other in a struct: one word for all of them."""

    layout: struct.Struct

    def __init__(self) -> None:
        self.names: list[str] = []
        self.letters = ">"

    def finish(self) -> None:
        self.layout = struct.Struct(self.letters)


class StructCodec(Codec):
    def __init__(self, kind: type, fields: Sequence[tuple[str, Codec]]):
        self.kind = kind
        self.names = [name for name, _ in fields]
        self.steps = self._steps(fields)
        self.is_plain = len(self.steps) == 1 and isinstance(self.steps[0], _Run)

    @staticmethod
    def _steps(fields: Sequence[tuple[str, Codec]]) -> list[Any]:
        """Runs of numbers, and (name, codec) of other fields."""
        steps: list[Any] = []
        for name, codec in fields:
            if codec.letter is None:
                steps.append((name, codec))
                continue
            if not steps or not isinstance(steps[-1], _Run):
                steps.append(_Run())
            steps[-1].names.append(name)
            steps[-1].letters += codec.letter
        for step in steps:
            if isinstance(step, _Run):
                step.finish()
        return steps

    def put(self, out: bytearray, value: Any) -> None:
        self._put_fields(out, value)

    def _put_fields(self, out: bytearray, value: Any) -> None:
        if not isinstance(value, self.kind):
            raise InvalidArgument(f"a {type(value).__name__} where there is a {self.kind.__name__}")
        for step in self.steps:
            if isinstance(step, _Run):
                out += step.layout.pack(*[getattr(value, name) for name in step.names])
            else:
                step[1].put(out, getattr(value, step[0]))

    def get(self, reader: Reader) -> Any:
        reader.enter()
        value = self.kind(*self._get_fields(reader))
        reader.depth -= 1
        return value

    def _get_fields(self, reader: Reader) -> list[Any]:
        values: list[Any] = []
        for step in self.steps:
            if isinstance(step, _Run):
                values += reader.unpack(step.layout)
            else:
                values.append(step[1].get(reader))
        return values

    def get_all(self, reader: Reader, count: int) -> typing.Optional[list[Any]]:
        """Of an array of structs that are nothing but numbers; None: they are to be read one by one."""
        if not self.is_plain or not count:
            return None
        layout, kind = self.steps[0].layout, self.kind
        if reader.left() < count * layout.size:
            raise reader.fail("a count is larger than the rest of the message")
        reader.enter()
        end = reader.at + count * layout.size
        values = [kind(*numbers) for numbers in layout.iter_unpack(memoryview(reader.data)[reader.at : end])]
        reader.at = end
        reader.depth -= 1
        return values

    def default(self) -> Any:
        return self.kind()


class ChainCodec(StructCodec):
    """The last field says whether there is another link; the fields before it are each link's."""

    def __init__(self, kind: type, fields: Sequence[tuple[str, Codec]]):
        super().__init__(kind, fields)
        self.next = self.names[-1]
        self.steps = self._steps(fields[:-1])

    def put(self, out: bytearray, value: Any) -> None:
        while value is not None:
            self._put_fields(out, value)
            value = getattr(value, self.next)
            out += COUNT.pack(value is not None)

    def get(self, reader: Reader) -> Any:
        reader.enter()
        first = last = self.kind(*self._get_fields(reader))
        while reader.flag():
            link = self.kind(*self._get_fields(reader))
            setattr(last, self.next, link)
            last = link
        reader.depth -= 1
        return first
