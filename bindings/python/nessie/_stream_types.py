# SPDX-License-Identifier: BSD-3-Clause
"""What nessie.streams says of streams, steps and arrays, and is told."""
from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Optional

from nessie._elements import Dtype


class Durability(enum.IntEnum):
    """What a step outlives once it has ended. MEMORY: its writers, and readers. LOGGED: the servers, too."""

    MEMORY = 1
    LOGGED = 2


class Reading(enum.IntEnum):
    """Which steps a reader sees. EVERY: all; a step is held for them until all ranks of the group have ended it. VIEW: the
    newest that there is each time; nothing is held, and step.missed says how many were not seen."""

    EVERY = 0
    VIEW = 1


class From(enum.IntEnum):
    """Where readers begin. OLDEST: of the steps that the servers have. LATEST: the last complete one. NEXT: the first that
    is complete after now."""

    OLDEST = 0
    LATEST = 1
    NEXT = 2


class State(enum.IntEnum):
    """Of a stream. INTERRUPTED: a writer died."""

    OPEN = 0
    ENDED = 1
    INTERRUPTED = 2


@dataclass(frozen=True)
class Variable:
    """fill: what elements have that nobody has put; None: there is none. constant: put in one step, its value holds until it
    is put again."""

    name: str
    dtype: Dtype
    shape: tuple[int, ...]
    fill: Optional[Any] = None
    constant: bool = False


@dataclass(frozen=True)
class Figures:
    """What a box has; of `elements` that count: neither NaN nor fill values."""

    minimum: float
    maximum: float
    mean: float
    elements: int


@dataclass(frozen=True)
class ReaderInfo:
    """A group of readers, as the servers see it. size, connected: ranks. ended: steps from the stream's first on that it needs
    no more. lag: complete steps that it has not ended."""

    subscription: str
    reading: Reading
    size: int
    connected: int
    ended: int
    lag: int
    missed: int


@dataclass(frozen=True)
class StreamInfo:
    """A stream, as the servers see it. why: of an interrupted one. is_file: a staged file of an unmodified program's. steps:
    that were complete. oldest: of those that the servers have; `steps`, if they have none. variables and attributes: as of the
    last complete step."""

    name: str
    state: State
    why: str
    is_file: bool
    writers: int
    connected: int
    durability: Durability
    steps: int
    oldest: int
    memory_bytes: int
    log_bytes: int
    variables: dict[str, Variable]
    attributes: dict[str, Any]
    readers: list[ReaderInfo]
