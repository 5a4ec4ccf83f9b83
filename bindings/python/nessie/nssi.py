# SPDX-License-Identifier: BSD-3-Clause
"""NSSI, the Network Scalable Service Interface: remote procedure calls in which the server directs all bulk data.

The nouns, and what they promise, are those of include/nssi/nssi.hpp and src/nssi/README.md. `nessie idl --language python`
makes classes of an interface that are more comfortable than Runtime.call() and Runtime.add_operation().

Threads: everything may be called from any thread. Waiting lets other threads of Python run. The handlers of services run on
threads of Python's own, at most `max_handlers` at once; those of kind SHORT run on the thread that is in run(), or waits.

Forks: a child of os.fork() leaves its parent's runtimes as they are, whatever it drops, and however it ends. Using one, its
buffers or its calls there is InvalidArgument; closing it is nothing. The child may open its own. One that was forked in a
handler ends, with status 1 and a sentence on stderr, when it returns from that; with its traceback, when it raises; with its
status, at sys.exit(). Nothing that is registered by atexit is called then.
"""
from __future__ import annotations

import atexit
import enum
import logging
import os
import sys
import threading
import time
import traceback
import weakref
from typing import Any, Callable, Generator, Generic, Mapping, NoReturn, Optional, Sequence, TypedDict, TypeVar, Unpack

from nessie import _core, _loop
from nessie._callbacks import Callbacks
from nessie.errors import Cancelled, Code, Error, Scope

Buffer = _core.Buffer
Request = _core.Request
Service = _core.Service
T = TypeVar("T")

_log = logging.getLogger("nessie")
_GRACE_S = 5.0


class Rights(enum.IntFlag):
    """What services may do with a buffer."""

    REMOTE_READ = 1
    REMOTE_WRITE = 2
    READ_WRITE = 3


class HandlerKind(enum.IntEnum):
    """FIBER: on a thread of its own; may wait. SHORT: in place, where the request arrived; must not wait for long. BULK and
    BULK_NOW: as FIBER, begun when it is quiet, as include/nssi/nssi.hpp says."""

    FIBER = 0
    SHORT = 1
    BULK = 2
    BULK_NOW = 3


class WhenBusy(enum.IntEnum):
    """If the service has no room for a call. WAIT: it waits here, within its deadline, until the service invites it. FAIL: it
    ends with Busy, whose retry_after says when there may be room."""

    WAIT = 0
    FAIL = 1


class Role(enum.IntEnum):
    """What a caller has proved. USER: the job's credential, as everybody who connects. OPERATOR: the operators', too (setting
    operator_credential). Setting nssi.op.NAME.role says what an operation demands."""

    USER = 0
    OPERATOR = 1


class CallOptions(TypedDict, total=False):
    """How a call is made. timeout: seconds until the call gives up; NESSIE_NSSI_TIMEOUT if not given. idempotent: carrying it
    out twice does no harm: it is sent again also to a service that was started anew. one_way: the result is not wanted: the
    call is over, with an empty result, when its handler begins, and dropping it before does not cancel it; not with `data`."""

    timeout: Optional[float]
    idempotent: bool
    one_way: bool
    when_busy: WhenBusy


class Future(Generic[T]):
    """A call in progress. Dropping it before it is over cancels it, and waits until the server can no longer touch its
    buffer. One thread at a time waits for it, or one task awaits it."""

    __slots__ = ("_call", "_decode", "_runtime", "__weakref__")

    def __init__(self, runtime: Runtime, call: _core.Call, decode: Callable[[bytes], T]):
        self._runtime, self._call, self._decode = runtime, call, decode

    def test(self) -> bool:
        """True once the result, or an error, is here. Drives progress."""
        return self._call.test()

    def wait(self, timeout: Optional[float] = None) -> None:
        """Returns when the call is over, whatever its outcome. TimedOut: not within `timeout` seconds; it goes on."""
        self._call.wait(timeout)

    def result(self, timeout: Optional[float] = None) -> T:
        """Waits, and returns the result or raises the call's error. TimedOut also as wait()."""
        self._call.wait(timeout)
        return self._decode(self._call.result())

    def cancel(self) -> None:
        """Ends the call with Cancelled; the service may have acted. Returns when the server can no longer touch its buffer, or
        its deadline has passed; at once if a task awaits it, which goes on then. A call that is over stays as it is."""
        self._call.cancel()

    def add_done_callback(self, function: Callable[[Future[T]], object]) -> None:
        """Has function(self) called once when the call is over, or soon if it is, on a thread of the runtime's for callbacks,
        one after the other: it may call result(), and make other calls. The call is not dropped before. From now on a
        thread drives progress, as start_progress() says. What `function` raises is logged. Cancelled: the runtime is closed."""
        self._runtime._call_back(self, self._call, function)

    def __await__(self) -> Generator[Any, None, T]:
        """The result. If the task is cancelled, so is the call."""
        if not self._call.is_done:
            yield from _loop.arrival(self._call, self._runtime.start_progress).__await__()
        return self._decode(self._call.result())


def wait_any(futures: Sequence[Future[Any]], timeout: Optional[float] = None) -> int:
    """Waits until one of the calls is over: its place; those that are over already count. TimedOut: none was within `timeout`
    seconds; they go on. InvalidArgument: there is none. For threads; tasks have asyncio.wait()."""
    return _core.wait_any([each._call for each in futures], timeout)


def wait_all(futures: Sequence[Future[Any]], timeout: Optional[float] = None) -> None:
    """Returns when all of the calls are over, whatever their outcome. TimedOut: not within `timeout` seconds; they go on."""
    end = None if timeout is None else time.monotonic() + timeout
    for each in futures:
        each.wait(None if end is None else max(0.0, end - time.monotonic()))


def _as_they_are(result: bytes) -> bytes:
    return result


class Runtime:
    """Client and server side of one process. A context manager: closes at its end."""

    def __init__(self, core: _core.Runtime):
        """Not for users: Runtime.open()."""
        self._core = core
        self._lock = threading.Lock()
        self._callbacks: Optional[Callbacks] = None
        self._threads: list[threading.Thread] = []
        self._has_workers = self._has_progress = False
        _open.add(self)

    @classmethod
    def open(
        cls,
        *,
        transports: Sequence[str] = (),
        listen: bool = True,
        credential: Optional[str] = None,
        max_handlers: int = 64,
        settings: Optional[Mapping[str, Any]] = None,
    ) -> Runtime:
        """transports: in order of preference; none: all that this machine has. listen: accept connections. credential: the
        job's secret (64 hexadecimal digits); NESSIE_CREDENTIAL if not given, or the user's own. max_handlers: requests that
        are carried out at once; of eight and more an eighth is for callers who have fewer than that in progress. settings:
        as in docs/configuration.md, such as {"nnti.spin_us": 0}."""
        texts = {key: str(value) for key, value in (settings or {}).items()}
        return cls(_core.Runtime(list(transports), listen, credential, texts, max(1, max_handlers)))

    @property
    def url(self) -> str:
        """Where others reach it; empty if it does not listen."""
        return self._core.url

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_threads"):
            self.close()

    def close(self) -> None:
        """Ends what is in progress with Cancelled. Handlers are given a while to end. Not for short handlers. Closing twice is
        nothing, nor is closing what another process opened."""
        if not self._core.is_here:
            return
        self._core.close()
        if self._callbacks is not None:
            self._callbacks.end()
        end = time.monotonic() + _GRACE_S
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, end - time.monotonic()))

    # --- clients ------------------------------------------------------------------------------------------------------

    def connect(self, url: str, timeout: float = 30.0) -> int:
        """The peer's id. Raises as nssi::Runtime::connect says: InvalidArgument, Unsupported, Refused, TimedOut, PeerLost."""
        return self._core.connect(url, timeout)

    def connect_to(self, what: str, timeout: float = 30.0) -> int:
        """Waits for the service that `what` says (a URL, "file:PATH", "pmix:NAME", "dir:NAME", "env:VARIABLE";
        docs/finding.md), and connects to the first of its instances that can be reached. The peer's id. Raises as
        nssi::connect_to says: InvalidArgument, NotFound, TimedOut, PeerLost, Refused, BadMessage, Unsupported."""
        return self._core.connect_to(what, timeout)

    def find(self, what: str, timeout: float = 30.0) -> list[str]:
        """The URLs of all instances of the service; waits until there is one. Raises as connect_to()."""
        return self._core.find(what, timeout)

    def announce(
        self,
        where: str,
        *,
        kind: str = "service",
        attributes: Optional[Mapping[str, str]] = None,
        timeout: float = 30.0,
    ) -> None:
        """Says where this runtime can be reached, and what it offers by now, to `where`: "file:PATH" (a contact file, in
        which people read its `kind`), "pmix:NAME" (the job's launcher) or "dir:NAME" (the directory, which keeps
        `attributes`). Until close(). Raises as nssi::announce says: InvalidArgument, Exists, NotFound, TimedOut,
        PeerLost, Unsupported."""
        self._core.announce(where, kind, dict(attributes or {}), timeout)

    def disconnect(self, peer: int) -> None:
        """Calls in progress end with Cancelled."""
        self._core.disconnect(peer)

    def register(self, memory: Any, rights: Rights) -> Buffer:
        """Lends memory to services: a numpy array, or any object with the buffer protocol, in one piece, without a copy. It
        is kept alive, and locked, until unregister() or until the Buffer is dropped. InvalidArgument: it is not in one piece,
        or must not be written although the rights say so."""
        return self._core.register(memory, int(rights))

    def allocate(self, size_bytes: int, rights: Rights = Rights.READ_WRITE) -> Buffer:
        """Memory that peers on this node can map, zeroed: numpy.frombuffer(buffer, dtype) sees it."""
        return self._core.allocate(size_bytes, int(rights))

    def call(
        self, service: Service, op: int, args: Any = b"", *, data: Optional[Buffer] = None, **options: Unpack[CallOptions]
    ) -> Future[bytes]:
        """Sends a request; returns at once. args: XDR, copied."""
        return self.start(service, op, args, _as_they_are, data=data, **options)

    def multicast(
        self, services: Sequence[Service], op: int, args: Any = b"", **options: Any
    ) -> list[Future[bytes]]:
        """The same request to several services: a call for each, in their order; `options` are those of call(). wait_all()
        waits for them. With clients of an interface: [client.ADD_async(40, 2) for client in clients]."""
        return [self.call(service, op, args, **options) for service in services]

    def start(
        self,
        service: Service,
        op: int,
        args: Any,
        decode: Callable[[bytes], T],
        *,
        data: Optional[Buffer] = None,
        **options: Unpack[CallOptions],
    ) -> Future[T]:
        """The same; the result is what `decode` makes of its bytes."""
        return Future(self, self._core.start(service, op, args, data, **options), decode)

    def call_and_wait(
        self, service: Service, op: int, args: Any = b"", *, data: Optional[Buffer] = None, **options: Unpack[CallOptions]
    ) -> bytes:
        """call(…).result(), for less."""
        return self._core.call(service, op, args, data, **options)

    # --- services -----------------------------------------------------------------------------------------------------

    def add_operation(
        self,
        program: int,
        version: int,
        op: int,
        handler: Callable[[Request], Any],
        *,
        name: str = "",
        provider: int = 0,
        kind: HandlerKind = HandlerKind.FIBER,
    ) -> None:
        """What the handler returns is the result: bytes, or None for none. What it raises is the caller's error:
        an Error as it is, others as Internal. Exists: this provider has an operation of that number."""
        named = _Handler(op, name, handler)
        self._core.add_operation(program, version, provider, op, name, int(kind), named, _serve)
        with self._lock:
            if not self._has_workers:
                self._has_workers = True
                self._start_worker()

    def run(self) -> None:
        """Serves until stop(). In the main thread signals have their way: Ctrl-C raises KeyboardInterrupt."""
        self._core.run()

    def stop(self) -> None:
        """Makes run() return. Any thread, handlers and signal handlers too."""
        self._core.stop()

    def stop_when_done(self, timeout: Optional[float] = None) -> None:
        """Refuses new requests (Unavailable), and makes run() return when those that were accepted have been answered and
        their callers have the results, after `timeout` seconds at the latest. The next run() takes requests again. Any
        thread, handlers and signal handlers too."""
        self._core.stop_when_done(timeout)

    def start_progress(self) -> None:
        """Has a thread of its own drive progress from now on, whenever nobody is in run(). Awaiting does it. Threads that
        wait() pay a switch between threads then."""
        self._core.check_here()
        with self._lock:
            if not self._has_progress:
                self._has_progress = True
                self._start_thread("nessie-progress", self._core.pump)

    def _call_back(self, future: Any, call: _core.Call, function: Callable[[Any], object]) -> None:
        self.start_progress()
        with self._lock:
            if self._core.is_closed:
                raise Cancelled("the runtime is closed")
            if self._callbacks is None:
                callbacks = Callbacks()
                self._start_thread("nessie-callbacks", callbacks.run)
                self._callbacks = callbacks
        self._callbacks.add(future, call, function)

    def _start_worker(self) -> None:
        """Without a thread more those that there are go on."""
        self_or_none, workers = weakref.ref(self), self._core.workers

        def start_another() -> None:
            runtime = self_or_none()
            if runtime is not None:
                runtime._start_worker()

        try:
            self._start_thread("nessie-handler", _work, workers, start_another)
        except RuntimeError as error:
            _log.error("no thread for another handler: %s", error)

    def _start_thread(self, name: str, target: Callable[..., object], *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)


# --- carrying requests out ------------------------------------------------------------------------------------------------


class _Handler:
    __slots__ = ("op", "name", "function")

    def __init__(self, op: int, name: str, function: Callable[[Request], Any]):
        self.op, self.name, self.function = op, name, function

    def __str__(self) -> str:
        return f"operation {self.op} ({self.name})"


def _serve(request: Request, handler: _Handler) -> None:
    """Has one request carried out and answered."""
    try:
        try:
            result = handler.function(request)
        finally:
            if not request.is_here:
                _end_child(handler, sys.exc_info()[1])
        if not request.is_answered:
            request.reply(b"" if result is None else memoryview(result))
    except Error as error:
        _pass_on(request, handler, error)
    except Exception as error:
        _log.exception("the handler of %s failed", handler)
        _fail(request, handler, error)
    except BaseException as error:
        _fail(request, handler, error)
        raise


def _end_child(handler: _Handler, error: Optional[BaseException]) -> NoReturn:
    """A child that was forked in a handler, and leaves that, has nowhere to go: below is what its parent's thread does."""
    status = 1
    if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
        status = error.code or 0
    elif isinstance(error, SystemExit):
        print(error.code, file=sys.stderr)
    elif error is not None:
        traceback.print_exception(error)
    else:
        print(
            f"nessie: a child that was forked in the handler of {handler} ends as it returns from that: end it with os._exit()",
            file=sys.stderr,
        )
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status & 0xFF)


def _pass_on(request: Request, handler: _Handler, error: Error) -> None:
    """As it was raised; Internal, if a field of it is not of its kind."""
    try:
        _answer(request, handler, error.code, error.message, error.scope, error.cause)
    except Exception:
        _log.exception("the handler of %s raised an error that cannot be sent", handler)
        _fail(request, handler, error)


def _fail(request: Request, handler: _Handler, error: BaseException) -> None:
    text = f"the handler of {handler} failed: {_in_words(error)}"
    _answer(request, handler, Code.INTERNAL, text, Scope.SERVICE, 0)


def _in_words(error: BaseException) -> str:
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:
        return f"{name}, which cannot say more"


def _answer(request: Request, handler: _Handler, code: int, message: str, scope: int, cause: int) -> None:
    if request.is_answered:
        _log.error("%s failed after its answer: %s", handler, message)
        return
    text = str(message).encode(errors="backslashreplace")  # where it is no UTF-8, as a file's name may be
    try:
        request.reply_error(int(code), text, int(scope), cause)
    except Error as error:
        _log.debug("%s had nobody to answer: %s", handler, error)


def _work(workers: _core.Workers, start_another: Callable[[], None]) -> None:
    """A worker's life. None of C++ is below a handler: the interpreter may end while it is busy."""
    while (job := workers.next()) is not None:
        if workers.claim_another():
            start_another()
        request, handler = job
        try:
            _serve(request, handler)
        except BaseException as error:  # an exception that ends a program ends no other request
            _log.error("%s raised %r", handler, error)
        finally:
            workers.finish(request)
        del job, request, handler


# Daemon threads must not meet the end of the interpreter inside a runtime.
_open: weakref.WeakSet[Runtime] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for runtime in list(_open):
        runtime.close()
