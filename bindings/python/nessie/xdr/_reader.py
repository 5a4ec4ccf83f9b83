# SPDX-License-Identifier: BSD-3-Clause
"""Reading bytes that may be anything; what all codecs share."""
from __future__ import annotations

import struct
import typing
from typing import Any, Iterable, Sequence

from nessie.errors import BadMessage, InvalidArgument

MOST_DEPTH = 64
UNBOUNDED = 0xFFFFFFFF
ZEROS = (b"", b"\0\0\0", b"\0\0", b"\0")  # what follows n bytes, by n % 4
COUNT = struct.Struct(">I")


class Reader:
    """Bytes that may be anything, and how far they have been read."""

    __slots__ = ("data", "at", "depth")

    def __init__(self, data: bytes):
        self.data, self.at, self.depth = data, 0, 0

    def fail(self, fault: str) -> BadMessage:
        return BadMessage(f"cannot decode the message: at byte {self.at}, {fault}")

    def left(self) -> int:
        return len(self.data) - self.at

    def unpack(self, layout: struct.Struct) -> tuple[Any, ...]:
        at = self.at
        if len(self.data) - at < layout.size:
            raise self.fail("the message ends within a number")
        self.at = at + layout.size
        return layout.unpack_from(self.data, at)

    def count(self, most: int, element_bytes: int) -> int:
        count: int = self.unpack(COUNT)[0]
        if count > (len(self.data) - self.at) // element_bytes:
            raise self.fail("a count is larger than the rest of the message")
        if count > most:
            raise self.fail("a string or an array is longer than its bound")
        return count

    def take(self, size: int) -> bytes:
        """That many bytes, and the padding behind them."""
        at, padding = self.at, ZEROS[size % 4]
        end = at + size
        if len(self.data) < end + len(padding):
            raise self.fail("the message ends within bytes")
        if self.data[end : end + len(padding)] != padding:
            raise self.fail("padding is not zero")
        self.at = end + len(padding)
        return self.data[at:end]

    def enter(self) -> None:
        if self.depth == MOST_DEPTH:
            raise self.fail("structs are nested too deep")
        self.depth += 1

    def flag(self) -> bool:
        word: int = self.unpack(COUNT)[0]
        if word > 1:
            raise self.fail("a flag is neither 0 nor 1")
        return word == 1


class Codec:
    """How values of one type are encoded and decoded. put() and get() are for other codecs."""

    #: Of a number: what struct.Struct calls it.
    letter: typing.Optional[str] = None
    #: The elements of an array of these take as many bytes at least.
    least_bytes = 4

    def put(self, out: bytearray, value: Any) -> None:
        raise NotImplementedError

    def get(self, reader: Reader) -> Any:
        raise NotImplementedError

    def default(self) -> Any:
        """What a field has at first."""
        raise NotImplementedError

    def encode(self, value: Any) -> bytes:
        """InvalidArgument: the value breaks a rule of its interface."""
        return encode_all((self,), (value,))

    def decode(self, data: Any) -> Any:
        """BadMessage: the bytes are not the encoding of one value."""
        return decode_all((self,), data)[0]


def encode_all(codecs: Sequence[Codec], values: Iterable[Any]) -> bytes:
    out = bytearray()
    try:
        for codec, value in zip(codecs, values, strict=True):
            codec.put(out, value)
    except (struct.error, TypeError, ValueError, AttributeError, OverflowError) as fault:
        if isinstance(fault, InvalidArgument):
            raise
        raise InvalidArgument(f"cannot encode the value: {fault}") from fault
    except RecursionError as fault:
        raise InvalidArgument("cannot encode the value: structs are nested too deep") from fault
    return bytes(out)


def decode_all(codecs: Sequence[Codec], data: Any) -> list[Any]:
    reader = Reader(data if type(data) is bytes else bytes(data))
    values = [codec.get(reader) for codec in codecs]
    if reader.at != len(reader.data):
        raise reader.fail("bytes follow the end of the value")
    return values


def codec_of(kind: Any) -> Codec:
    """A codec as it is; that of a class."""
    codec: Codec = kind if isinstance(kind, Codec) else kind.xdr
    return codec
