# SPDX-License-Identifier: BSD-3-Clause
"""Unions: a value of what they switch on, and the arm that belongs to it."""
from __future__ import annotations

import typing
from typing import Any, Callable, ClassVar, Sequence, Type

from nessie.errors import InvalidArgument
from nessie.xdr._reader import Codec, Reader, codec_of
from nessie.xdr._structs import Value, is_same


class Arm:
    """name: none of void. cases: none of the default."""

    def __init__(self, name: typing.Optional[str], codec: Any, cases: Sequence[int] = ()):
        self.name, self.codec, self.cases = name, codec_of(codec), cases


class Union(Value):
    """What it switches on, under its own name, and `arm`, which belongs to it. Each arm's name gives it too; None if it is
    another one. At first it is the first arm. class u(Union, on=("name", codec), arms=[…])"""

    arm: Any
    _on: ClassVar[str]

    def __init_subclass__(
        cls, on: typing.Optional[tuple[str, Any]] = None, arms: Sequence[Arm] = (), **options: Any
    ) -> None:
        super().__init_subclass__(**options)
        if on is None:
            return
        cls._on = on[0]
        cls.xdr = UnionCodec(cls, codec_of(on[1]), arms)
        for arm in arms:
            if arm.name is not None:
                setattr(cls, arm.name, property(_access(arm)))

    def __init__(self, choice: Any = None, arm: Any = ...):
        """Its arm is empty if it is not given."""
        codec = self.xdr
        self.select(codec.arms[0].cases[0] if choice is None else choice)
        if arm is not ...:
            self.arm = arm

    def select(self, choice: Any) -> None:
        """Sets what it switches on, and makes that arm, empty. InvalidArgument: there is no such arm."""
        found = self.xdr.arm_for(choice)
        if found is None:
            raise InvalidArgument(f"a union has no such arm: {choice!r}")
        setattr(self, self._on, choice)
        self.arm = found.codec.default()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return getattr(self, self._on) == getattr(other, self._on) and is_same(self.arm, other.arm)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._on}={getattr(self, self._on)!r}, arm={self.arm!r})"


def _access(arm: Arm) -> Callable[[Union], Any]:
    return lambda union: union.arm if union.xdr.arm_for(getattr(union, union._on)) is arm else None


class UnionCodec(Codec):
    def __init__(self, kind: Type[Union], on: Codec, arms: Sequence[Arm]):
        self.kind, self.on, self.arms = kind, on, arms
        self.by_case = {int(case): arm for arm in arms for case in arm.cases}
        self.otherwise = next((arm for arm in arms if not arm.cases), None)

    def arm_for(self, choice: Any) -> typing.Optional[Arm]:
        return self.by_case.get(choice, self.otherwise)

    def put(self, out: bytearray, value: Any) -> None:
        if not isinstance(value, self.kind):
            raise InvalidArgument(f"a {type(value).__name__} where there is a {self.kind.__name__}")
        choice = getattr(value, value._on)
        self.on.put(out, choice)
        arm = self.arm_for(choice)
        if arm is None:
            raise InvalidArgument(f"a union has no such arm: {choice!r}")
        arm.codec.put(out, value.arm)

    def get(self, reader: Reader) -> Any:
        reader.enter()
        choice = self.on.get(reader)
        arm = self.arm_for(choice)
        if arm is None:
            raise reader.fail("a union has no such arm")
        value = self.kind.__new__(self.kind)
        setattr(value, value._on, choice)
        value.arm = arm.codec.get(reader)
        reader.depth -= 1
        return value

    def default(self) -> Any:
        return self.kind()
