# SPDX-License-Identifier: BSD-3-Clause
"""XDR (RFC 4506) to and from bytes, for what `nessie idl --language python` makes of interfaces.

The bytes are those of the C++ codec (include/xdr/codec.hpp), and so is the strictness. Decoding trusts nothing: a count is
compared with the bytes that are left before memory is spent on it; padding is zero; bools and what says that an optional
value is there are 0 or 1; enums have names; nothing is longer than its bound; nothing follows the value; structs and unions
lie 64 deep in each other at most. What is wrong is BadMessage, which says where; a value that cannot be encoded is
InvalidArgument.

Arrays of numbers are numpy arrays, of exactly the interface's type when they were decoded; they are swapped by vector
instructions, about as fast as memcpy. Whatever numpy makes an array of integers (of numbers) of is encoded.
"""
from nessie.xdr._arrays import Array, Numbers, Optional, Ref, Vector
from nessie.xdr._bytes import FixedOpaque, Opaque, String
from nessie.xdr._reader import MOST_DEPTH, UNBOUNDED, Codec, Reader, codec_of, decode_all, encode_all
from nessie.xdr._structs import DEFAULT, Struct, chain, struct_ as struct
from nessie.xdr._unions import Arm, Union
from nessie.xdr._words import BOOL, DOUBLE, FLOAT, HYPER, INT, UNSIGNED, UNSIGNED_HYPER, VOID, Enum, named

__all__ = [
    "Arm",
    "Array",
    "BOOL",
    "Codec",
    "DEFAULT",
    "DOUBLE",
    "Enum",
    "FLOAT",
    "FixedOpaque",
    "HYPER",
    "INT",
    "MOST_DEPTH",
    "Numbers",
    "Opaque",
    "Optional",
    "Reader",
    "Ref",
    "String",
    "Struct",
    "UNBOUNDED",
    "UNSIGNED",
    "UNSIGNED_HYPER",
    "Union",
    "VOID",
    "Vector",
    "chain",
    "codec_of",
    "decode_all",
    "encode_all",
    "named",
    "struct",
]
