# SPDX-License-Identifier: BSD-3-Clause
"""Streams: a running program's arrays in other programs, step by step, none lost. And the shared space.

    with streams.Writer("flow") as out:
        out.define("T", (nz, ny, nx), "f8", attributes={"units": "K"})
        for ...:
            with out.step():
                out.put("T", array)

    with streams.Reader("flow") as steps:
        for step in steps:
            print(step.number, step["T"][0, :, ::4].mean())

What each promises, and refuses, is in include/nessie/streams.hpp. Timeouts are in seconds; None: no limit. What is given to
a writer, reader or space when it is opened holds for all that it waits for, unless a call says another one.

Threads: what waits lets other threads run, and ends for Ctrl-C in the main thread; only Space.put() waits for its own timeout.
A writer, reader or space is used by one thread at a time: InvalidArgument otherwise, and when it is closed.
Forks: a child of os.fork() leaves its parent's as they are, and may open its own.
"""
from __future__ import annotations

import contextlib
import math
from types import TracebackType
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

import numpy

from nessie import _core
from nessie._elements import DTYPES, Array, Dtype, attribute_of, elements, raw_attribute, scalar_of, type_of
from nessie._stream_types import Durability, Figures, From, Reading, ReaderInfo, State, StreamInfo, Variable
from nessie.errors import InvalidArgument, TimedOut

__all__ = [
    "DEFAULT_TIMEOUT_S",
    "Durability",
    "Figures",
    "From",
    "Reader",
    "ReaderInfo",
    "Reading",
    "Space",
    "State",
    "Step",
    "StepArray",
    "StreamInfo",
    "Variable",
    "Writer",
    "allocate",
    "list_streams",
]

DEFAULT_TIMEOUT_S = 30.0
_STEP_OK, _NOT_YET, _END = range(3)
#: A timeout that was not given.
_OWN = -1.0


def _variable(raw: tuple[str, int, tuple[int, ...], bytes, bool]) -> Variable:
    name, number, shape, fill, constant = raw
    return Variable(name, DTYPES[number], shape, scalar_of(fill, DTYPES[number]), constant)


def _attributes(raw: list[tuple[str, str, int, bytes]], of: str) -> dict[str, Any]:
    return {name: attribute_of(number, value) for variable, name, number, value in raw if variable == of}


def _box(array: Array, start: Optional[Sequence[int]]) -> tuple[list[int], list[int]]:
    """Where an array goes, or comes from; `start` None: at the beginning."""
    return [0] * array.ndim if start is None else list(start), list(array.shape)


def allocate(shape: Union[int, Sequence[int]], dtype: Any = "f8") -> Array:
    """An array, of zeros, in memory that servers on this node can reach at once: what is got into it (`out=`) is copied once,
    and quickly. NoMemory."""
    wanted = numpy.dtype(dtype)
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    count = math.prod(extents)
    memory = memoryview(_core.StreamMemory(max(1, count * wanted.itemsize)))
    array: Array = numpy.frombuffer(memory, wanted, count)
    return array.reshape(extents)


class _Open:
    """What is opened, waits, and is closed: a context manager, which drops it if it is left by an exception."""

    _core: Any
    _timeout: Optional[float]

    def _time(self, timeout: Optional[float]) -> Optional[float]:
        return self._timeout if timeout == _OWN else timeout

    @property
    def is_closed(self) -> bool:
        return bool(self._core.is_closed)

    def close(self, timeout: Optional[float] = _OWN) -> None:
        raise NotImplementedError

    def drop(self) -> None:
        raise NotImplementedError

    def __exit__(
        self, kind: Optional[type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if kind is not None:
            self.drop()
        else:
            self.close()


# --- writing ----------------------------------------------------------------------------------------------------------


class Writer(_Open):
    """One rank of those who write a stream. A context manager: closes at its end, which ends the stream; left by an exception
    it drops the stream, which is interrupted then, as if the process had been killed."""

    def __init__(
        self,
        name: str,
        *,
        rank: int = 0,
        size: int = 1,
        at: str = "",
        durability: Optional[Durability] = None,
        append: bool = False,
        await_readers: int = 0,
        timeout: Optional[float] = DEFAULT_TIMEOUT_S,
    ):
        """Returns when the servers know this rank. at: where they are; those of this user on this node if not given, or as the
        setting `streams.at` says. append: goes on after the last complete step of the stream of this name. await_readers: so
        many groups of readers that see every step must be there before the first step begins. Raises as Writer::open says:
        TimedOut, NotFound, Exists, InvalidArgument."""
        self._timeout = timeout
        self._defined: dict[str, Variable] = {}
        self._spans: list[Array] = []
        self._core = _core.StreamWriter(name, rank, size, at, int(durability or 0), append, await_readers, timeout)

    def __enter__(self) -> Writer:
        return self

    @property
    def number(self) -> int:
        """Of the step that is open, or of the next one; the first is 0."""
        return int(self._core.step)

    def define(
        self,
        name: str,
        shape: Union[int, Sequence[int]] = (),
        dtype: Any = "f8",
        *,
        fill: Optional[Any] = None,
        constant: bool = False,
        attributes: Optional[Mapping[str, Any]] = None,
    ) -> None:
        """Describes an array by its global shape; again, with another shape, at the beginning of any step. InvalidArgument: as
        Writer::define says."""
        number = type_of(dtype)
        extents = (shape,) if isinstance(shape, int) else tuple(int(each) for each in shape)
        raw = b"" if fill is None else elements(fill, DTYPES[number]).tobytes()
        self._core.define(name, number, list(extents), raw, constant)
        self._defined[name] = Variable(name, DTYPES[number], extents, fill, constant)
        for key, value in (attributes or {}).items():
            self.set_attribute(key, value, name)

    def set_attribute(self, name: str, value: Any, variable: str = "") -> None:
        """A text, a number, or several, of a variable, or of the stream. It holds from this step on."""
        number, raw = raw_attribute(value)
        self._core.set_attribute(variable, name, number, raw)

    def begin_step(self, timeout: Optional[float] = _OWN) -> int:
        """Begins the next step, and returns its number: waits until the servers have room for it. TimedOut: not as many readers
        are there as are awaited. Busy: no room; the message names who holds it. InvalidArgument: a step is open."""
        if self._core.begin_step(self._time(timeout)) == _NOT_YET:
            raise TimedOut("the readers that are awaited are not there yet; it can be called again")
        return self.number

    def end_step(self, timeout: Optional[float] = _OWN) -> None:
        """Ends the step: returns when the servers have all that this rank has put. Raises as Writer::end_step says."""
        self._core.end_step(self._time(timeout))
        for each in self._spans:
            each.flags.writeable = False
        self._spans.clear()

    @contextlib.contextmanager
    def step(self, timeout: Optional[float] = _OWN) -> Iterator[int]:
        """begin_step(), and end_step() at the end. Left by an exception, the step stays open, and nobody sees it."""
        yield self.begin_step(timeout)
        self.end_step(timeout)

    def _dtype(self, variable: str) -> Dtype:
        if variable not in self._defined:
            raise InvalidArgument(f"no variable {variable} was defined here")
        return self._defined[variable].dtype

    def put(self, variable: str, value: Any, start: Optional[Sequence[int]] = None) -> None:
        """Puts a box of the array's shape that begins at `start`: copies it. Numbers of other types are converted, if they fit.
        Raises as Writer::put says: InvalidArgument, NotFound, OutOfRange, NoMemory."""
        array = elements(value, self._dtype(variable))
        is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        data = array if is_fortran else numpy.ascontiguousarray(array).reshape(array.shape)
        self._core.put(variable, *_box(array, start), data, is_fortran)

    def put_lent(self, variable: str, array: Array, start: Optional[Sequence[int]] = None) -> None:
        """As put(), but the array stays as it is until end_step() has returned: servers of other nodes pull it. InvalidArgument: also one of another
        type, or whose elements do not lie one after the other."""
        wanted = self._dtype(variable)
        if array.dtype != wanted or not array.flags.c_contiguous:
            raise InvalidArgument(f"what is lent is a contiguous array of {wanted}: put() it instead")
        self._core.put_lent(variable, *_box(array, start), array)

    def span(
        self, variable: str, start: Optional[Sequence[int]] = None, count: Optional[Sequence[int]] = None
    ) -> Array:
        """An array to compute a box into, which is put by that: until end_step(), after which neither it nor its views are to be
        used. What it holds at first is unspecified. `count` None: all from `start` on. Raises as put()."""
        dtype = self._dtype(variable)
        shape = self._defined[variable].shape
        begin = [0] * len(shape) if start is None else list(start)
        extents = [n - first for n, first in zip(shape, begin)] if count is None else list(count)
        size = math.prod(extents)
        memory = self._core.span(variable, begin, extents, size * dtype.itemsize)
        array = numpy.frombuffer(memory, dtype).reshape(extents) if size else numpy.empty(extents, dtype)
        self._spans.append(array)
        return array

    def close(self, timeout: Optional[float] = _OWN) -> None:
        """Says that this rank writes no more. An open step is dropped, and never seen. TimedOut: it can be called again. Closing
        twice is nothing."""
        if not self.is_closed:
            self._core.close(self._time(timeout))

    def drop(self) -> None:
        """To others it is as if the process had been killed. Does not wait."""
        self._core.drop()


# --- reading ----------------------------------------------------------------------------------------------------------


def _select(key: Any, shape: tuple[int, ...]) -> tuple[list[int], list[int], tuple[Any, ...]]:
    """Of a selection: the box around it, and what is to be taken of that."""
    keys = list(key) if isinstance(key, tuple) else [key]
    given = sum(each is not Ellipsis for each in keys)
    if given > len(shape) or len(keys) - given > 1:
        raise IndexError(f"{given} indices for {len(shape)} dimensions")
    at = next((i for i, each in enumerate(keys) if each is Ellipsis), len(keys))
    keys[at : at + 1] = [slice(None)] * (len(shape) - given)
    ranges = [_range(each, extent) for each, extent in zip(keys, shape)]
    start = [min(each[0], each[-1]) if each else 0 for each in ranges]
    count = [abs(each[-1] - each[0]) + 1 if each else 0 for each in ranges]
    taken = [slice(None, None, each.step) if isinstance(key, slice) else 0 for key, each in zip(keys, ranges)]
    return start, count, tuple(taken)


def _range(key: Any, extent: int) -> range:
    if isinstance(key, slice):
        return range(*key.indices(extent))
    index = key.__index__()
    if not -extent <= index < extent:
        raise IndexError(f"index {index} is out of bounds for an extent of {extent}")
    return range(index % extent, index % extent + 1)


class StepArray:
    """An array of a step. Nothing of it moves before it is asked for: by array[0:9, :, 5], a selection by numbers and slices,
    of which the box around it comes; by array[...] or numpy.asarray(array), all of it; by get()."""

    def __init__(self, step: Step, variable: Variable):
        self._step, self.variable = step, variable

    @property
    def name(self) -> str:
        return self.variable.name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.variable.shape

    @property
    def dtype(self) -> Dtype:
        return self.variable.dtype

    @property
    def attributes(self) -> dict[str, Any]:
        return self._step._attributes_of(self.name)

    def get(
        self,
        start: Optional[Sequence[int]] = None,
        count: Optional[Sequence[int]] = None,
        *,
        out: Optional[Array] = None,
        timeout: Optional[float] = _OWN,
    ) -> Array:
        """A box; `count` None: all from `start` on, or the shape of `out`, an array of this type that it is got into. Raises as
        Reader::get says: NotFound, OutOfRange, InvalidArgument, TimedOut, PeerLost."""
        begin = [0] * len(self.shape) if start is None else list(start)
        if count is None:
            count = [n - first for n, first in zip(self.shape, begin)] if out is None else out.shape
        into = numpy.empty(tuple(count), self.dtype) if out is None else out
        if into.dtype != self.dtype or into.shape != tuple(count):
            raise InvalidArgument(f"`out` is an array of {self.dtype} of the box's shape {tuple(count)}")
        is_fortran = into.flags.f_contiguous and not into.flags.c_contiguous
        self._step._reader()._core.get(
            self.name, begin, list(count), into, is_fortran, self._step._reader()._time(timeout)
        )
        return into

    def figures(
        self,
        start: Optional[Sequence[int]] = None,
        count: Optional[Sequence[int]] = None,
        *,
        timeout: Optional[float] = _OWN,
    ) -> Figures:
        """Minimum, maximum and mean of a box, computed at the servers. Raises as get(), and Unsupported: it is text."""
        begin = [0] * len(self.shape) if start is None else list(start)
        extents = [n - first for n, first in zip(self.shape, begin)] if count is None else list(count)
        reader = self._step._reader()
        return Figures(*reader._core.figures(self.name, begin, extents, reader._time(timeout)))

    def __getitem__(self, key: Any) -> Any:
        start, count, taken = _select(key, self.shape)
        box = self.get(start, count) if math.prod(count) else numpy.empty(count, self.dtype)
        picked = box[taken]
        is_box = numpy.ndim(picked) == box.ndim and picked.size == box.size and picked.flags.c_contiguous
        return picked if is_box or numpy.ndim(picked) == 0 else picked.copy()

    def __array__(self, dtype: Any = None) -> Array:
        array = self.get()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<{self.name}: {self.dtype} {self.shape} of step {self._step.number}>"


class Step(Mapping[str, StepArray]):
    """A complete step, until the next one begins: its arrays, by their names. number: from 0 on. missed: how many steps were
    not seen between this one and the one before. attributes: of the stream."""

    def __init__(self, reader: Reader):
        self._owner = reader
        self.number: int = reader._core.step
        self.missed: int = reader._core.missed
        self._attributes = reader._core.attributes
        self.attributes = _attributes(self._attributes, "")
        self._arrays = {raw[0]: StepArray(self, _variable(raw)) for raw in reader._core.variables}

    def _reader(self) -> Reader:
        if self._owner._step is not self:
            raise InvalidArgument(f"step {self.number} has ended")
        return self._owner

    def _attributes_of(self, variable: str) -> dict[str, Any]:
        return _attributes(self._attributes, variable)

    def __getitem__(self, name: str) -> StepArray:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"<step {self.number}: {', '.join(self._arrays)}>"


class Reader(_Open):
    """One rank of a group that reads a stream. A context manager: closes at its end. Iterates over the steps until the stream's
    end, and ends each before the next one begins; one that the loop was left in stays open."""

    def __init__(
        self,
        name: str,
        *,
        rank: int = 0,
        size: int = 1,
        at: str = "",
        reading: Reading = Reading.EVERY,
        begin: Union[From, int] = From.OLDEST,
        subscription: str = "",
        group: int = 0,
        timeout: Optional[float] = DEFAULT_TIMEOUT_S,
    ):
        """Waits until there is a stream of that name. begin: where, or the number of a step. subscription: names the group, for
        which steps are held while nobody is there. group: tells groups of several ranks without a name apart. Raises as
        Reader::open says: TimedOut, Exists, InvalidArgument."""
        self._timeout = timeout
        self._step: Optional[Step] = None
        where, first = (int(begin), 0) if isinstance(begin, From) else (3, int(begin))
        self._core = _core.StreamReader(
            name, rank, size, at, reading == Reading.VIEW, where, first, subscription, group, timeout
        )

    def __enter__(self) -> Reader:
        return self

    def begin_step(self, timeout: Optional[float] = _OWN) -> Optional[Step]:
        """Waits for the next step; None: there will be none. TimedOut: there is none yet. PeerLost: a writer died, and all
        complete steps have been seen; called again, waits for writers who append. NotFound, once: steps are gone that this
        group should have seen; called again, goes on with the next one. InvalidArgument: a step is open."""
        state = self._core.begin_step(self._time(timeout))
        if state == _NOT_YET:
            raise TimedOut("there is no further step yet; it can be called again")
        self._step = Step(self) if state == _STEP_OK else None
        return self._step

    def end_step(self) -> None:
        """The step is not needed any more. Does not wait."""
        self._core.end_step()
        self._step = None

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        if self._step is not None:
            self.end_step()
        step = self.begin_step()
        if step is None:
            raise StopIteration
        return step

    def close(self, timeout: Optional[float] = _OWN) -> None:
        """Leaves: holds nothing any more; of a named subscription, all steps from the first that it has not ended on."""
        if not self.is_closed:
            self._core.close(self._time(timeout))
        self._step = None

    def unsubscribe(self, timeout: Optional[float] = _OWN) -> None:
        """Leaves, and lets go of the subscription: nothing is held for its name any more."""
        self._core.unsubscribe(self._time(timeout))
        self._step = None

    def drop(self) -> None:
        """Leaves without waiting. A named subscription resumes."""
        self._core.drop()
        self._step = None


# --- the shared space, and who is there -------------------------------------------------------------------------------


class Space(_Open):
    """The shared space: arrays under names, with versions, each element of a version written once, by whomever. A context
    manager."""

    def __init__(self, *, at: str = "", timeout: Optional[float] = DEFAULT_TIMEOUT_S):
        """Finds the servers; `at` as of Writer."""
        self._timeout = timeout
        self._core = _core.StreamSpace(at, timeout)

    def __enter__(self) -> Space:
        return self

    def put(
        self,
        name: str,
        version: int,
        value: Any,
        start: Optional[Sequence[int]] = None,
        *,
        timeout: Optional[float] = _OWN,
    ) -> None:
        """Puts a box of the array's shape that begins at `start`. Returns when the servers have it. Raises as Space::put says:
        Exists, InvalidArgument, NotFound, Busy."""
        array = numpy.asarray(value)
        number = type_of(array.dtype)
        data = numpy.ascontiguousarray(elements(array, DTYPES[number]))
        box = data.reshape(array.shape) if number != 2 else data
        self._core.put(name, version, number, *_box(box, start), box, self._time(timeout))

    def get(
        self,
        name: str,
        version: int,
        shape: Union[int, Sequence[int]] = (),
        dtype: Any = "f8",
        start: Optional[Sequence[int]] = None,
        *,
        out: Optional[Array] = None,
        timeout: Optional[float] = _OWN,
    ) -> Array:
        """Waits until every element of the box was put in that version. `out`: an array that has the shape and type, and that it
        is got into. TimedOut: not yet; the message says how many were. Raises as Space::get says, besides."""
        extents = (shape,) if isinstance(shape, int) else tuple(shape)
        into = numpy.empty(extents, DTYPES[type_of(dtype)]) if out is None else out
        if not into.flags.c_contiguous:
            raise InvalidArgument("`out` is an array whose elements lie one after the other")
        self._core.get(name, version, type_of(into.dtype), *_box(into, start), into, self._time(timeout))
        return into

    def newest(self, name: str, *, timeout: Optional[float] = _OWN) -> int:
        """The newest version of which anything was put. NotFound: there is none."""
        return int(self._core.newest(name, self._time(timeout)))

    def close(self, timeout: Optional[float] = _OWN) -> None:
        """Does not wait."""
        self._core.close()

    drop = close


def list_streams(at: str = "", timeout: Optional[float] = DEFAULT_TIMEOUT_S) -> list[StreamInfo]:
    """All streams of the servers; those of this user on this node if `at` is not given. TimedOut, NotFound: no server was
    there."""
    return [_info(raw) for raw in _core.list_streams(at, timeout)]


def _info(raw: dict[str, Any]) -> StreamInfo:
    readers = [ReaderInfo(reading=Reading(each.pop("is_view")), **each) for each in raw.pop("readers")]
    variables = {each[0]: _variable(each) for each in raw.pop("variables")}
    return StreamInfo(
        state=State(raw.pop("state")),
        durability=Durability.LOGGED if raw.pop("is_logged") else Durability.MEMORY,
        variables=variables,
        attributes=_attributes(raw.pop("attributes"), ""),
        readers=readers,
        **raw,
    )
