# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong: one class for each code of the table that C, C++, Fortran and the wire share (nessie/codes.h)."""
import enum
from typing import Any


class Code(enum.IntEnum):
    """What kind of error it is, named by what its caller does next: `advice()` says it in words."""

    OK = 0
    TIMED_OUT = 1
    PEER_LOST = 2
    REFUSED = 3
    INVALID_ARGUMENT = 4
    OUT_OF_RANGE = 5
    NOT_FOUND = 6
    EXISTS = 7
    UNSUPPORTED = 8
    NO_MEMORY = 9
    BUSY = 10
    BAD_MESSAGE = 11
    IO = 12
    CANCELLED = 13
    NO_RESULT = 14
    INTERNAL = 15
    TOO_LARGE = 16
    INTERRUPTED = 17
    UNAVAILABLE = 18

    def advice(self) -> str:
        from nessie import _core

        return {number: advice for _, number, advice in _core.CODES}[self.value]


class Scope(enum.IntEnum):
    """The largest thing that is lost with the operation."""

    OPERATION = 0
    PEER = 1
    SERVICE = 2
    PROCESS = 3


class Error(Exception):
    """What all errors of Nessie are. A handler raises it, too: its caller gets it as it was raised.

    code: for the program. cause: errno, or the transport's own code; 0: none. message: for people, says what to do.
    retry_after: of Busy, where it is known, in how many seconds there may be room; otherwise 0.
    """

    code = Code.INTERNAL

    def __init__(
        self, message: str = "", *, scope: Scope = Scope.OPERATION, cause: int = 0, retry_after: float = 0.0
    ):
        super().__init__(message)
        self.message = message
        self.scope = scope
        self.cause = cause
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.message + (f" (cause {self.cause})" if self.cause else "")

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (type(self), self.message, self.scope, self.cause, self.retry_after)


def _unpickle(kind: type[Error], message: str, scope: Scope, cause: int, retry_after: float = 0.0) -> Error:
    return kind(message, scope=scope, cause=cause, retry_after=retry_after)


class TimedOut(Error, TimeoutError):
    """The deadline passed; the peer may have acted, or may still act."""

    code = Code.TIMED_OUT


class PeerLost(Error, ConnectionError):
    """The peer died or its connection broke; reconnect or give up on it."""

    code = Code.PEER_LOST


class Refused(Error, PermissionError):
    """The peer does not grant this: wrong credential, or a right that the buffer lacks."""

    code = Code.REFUSED


class InvalidArgument(Error, ValueError):
    """Correct the call; nothing was changed."""

    code = Code.INVALID_ARGUMENT


class OutOfRange(Error, IndexError):
    """Correct offset or length; nothing was moved."""

    code = Code.OUT_OF_RANGE


class NotFound(Error, LookupError):
    """It does not exist, or does not exist any more."""

    code = Code.NOT_FOUND


class Exists(Error):
    """Choose another name, or use the one that exists."""

    code = Code.EXISTS


class Unsupported(Error):
    """This machine, transport or version cannot do it; choose another way."""

    code = Code.UNSUPPORTED


class NoMemory(Error, MemoryError):
    """Free memory or raise the limit."""

    code = Code.NO_MEMORY


class Busy(Error):
    """Try again later."""

    code = Code.BUSY


class BadMessage(Error):
    """What the peer sent cannot be decoded; versions differ, or the peer is faulty."""

    code = Code.BAD_MESSAGE


class Io(Error, OSError):
    """The storage or the network failed; the cause tells how."""

    code = Code.IO


class Cancelled(Error):
    """The operation was cancelled before it took effect."""

    code = Code.CANCELLED


class NoResult(Error):
    """The service's handler ended without a result; report it to the service's developer."""

    code = Code.NO_RESULT


class Internal(Error):
    """A fault in Nessie, or in a service's handler; please report it."""

    code = Code.INTERNAL


class TooLarge(Error):
    """The message is larger than its destination; send less, or have the peer make room."""

    code = Code.TOO_LARGE


class Interrupted(Error):
    """Somebody interrupted the wait; what was waited for goes on."""

    code = Code.INTERRUPTED


class Unavailable(Error):
    """The service is being stopped; go to another instance, or try again later."""

    code = Code.UNAVAILABLE


CLASSES: dict[int, type[Error]] = {kind.code: kind for kind in Error.__subclasses__()}


def make(code: int, message: str, scope: int, cause: int, retry_after: float = 0.0) -> Error:
    """The exception of a code; of one that this version does not know, Internal, which names it."""
    kind = CLASSES.get(code)
    if kind is None:
        return Internal(f"error code {code}, of another version: {message}", scope=Scope(scope), cause=cause)
    return kind(message, scope=Scope(scope), cause=cause, retry_after=retry_after)
