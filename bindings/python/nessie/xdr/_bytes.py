# SPDX-License-Identifier: BSD-3-Clause
"""Bytes and text."""
from __future__ import annotations

from typing import Any

from nessie.errors import InvalidArgument
from nessie.xdr._reader import COUNT, UNBOUNDED, ZEROS, Codec, Reader


def put_bytes(out: bytearray, value: Any) -> None:
    out += value
    out += ZEROS[len(value) % 4]


def check_size(size: int, most: int) -> None:
    if size > most:
        raise InvalidArgument(f"a string or an array is longer than its bound: {size}, of {most} at most")


class FixedOpaque(Codec):
    """bytes of one length: opaque[size]."""

    def __init__(self, size: int):
        self.size = size

    def put(self, out: bytearray, value: Any) -> None:
        value = memoryview(value).cast("B")
        if len(value) != self.size:
            raise InvalidArgument(f"{len(value)} bytes where there are {self.size}")
        put_bytes(out, value)

    def get(self, reader: Reader) -> Any:
        return reader.take(self.size)

    def default(self) -> Any:
        return bytes(self.size)


class Opaque(Codec):
    """bytes: opaque<most>."""

    least_bytes = 4

    def __init__(self, most: int = UNBOUNDED):
        self.most = most

    def put(self, out: bytearray, value: Any) -> None:
        value = memoryview(value).cast("B")
        check_size(len(value), self.most)
        out += COUNT.pack(len(value))
        put_bytes(out, value)

    def get(self, reader: Reader) -> Any:
        return reader.take(reader.count(self.most, 1))

    def default(self) -> Any:
        return b""


class String(Codec):
    """str: string<most>, whose bound counts bytes. UTF-8; bytes that are not keep their place as surrogates (PEP 383)."""

    def __init__(self, most: int = UNBOUNDED):
        self.most = most

    def put(self, out: bytearray, value: Any) -> None:
        data = value.encode("utf-8", "surrogateescape")
        check_size(len(data), self.most)
        out += COUNT.pack(len(data))
        put_bytes(out, data)

    def get(self, reader: Reader) -> Any:
        return reader.take(reader.count(self.most, 1)).decode("utf-8", "surrogateescape")

    def default(self) -> Any:
        return ""
