# SPDX-License-Identifier: BSD-3-Clause
"""Calls in event loops: a completion makes a descriptor readable, for which the loop sleeps."""
from __future__ import annotations

import asyncio
import itertools
import weakref
from typing import Callable

from nessie import _core
from nessie.errors import Error

_FOR_EVER = 1e9


class _Inbox:
    """The calls that the tasks of one event loop await."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self._mailbox = _core.Mailbox()
        self._tokens = itertools.count()
        # The call, and with it its buffer, stays until it is over, also if nobody wants to know any more.
        self._expected: dict[int, tuple[asyncio.Future[None], _core.Call]] = {}
        loop.add_reader(self._mailbox.fileno(), self._deliver)

    def expect(self, call: _core.Call, waiter: asyncio.Future[None]) -> None:
        token = next(self._tokens)
        call.tell(self._mailbox, token)
        self._expected[token] = waiter, call

    def _deliver(self) -> None:
        for token in self._mailbox.take_all():
            waiter, _ = self._expected.pop(token)
            if not waiter.done():
                waiter.set_result(None)


_inboxes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Inbox] = weakref.WeakKeyDictionary()


def _inbox_of(loop: asyncio.AbstractEventLoop) -> _Inbox:
    inbox = _inboxes.get(loop)
    if inbox is None:
        inbox = _inboxes[loop] = _Inbox(loop)
    return inbox


def _expire(call: _core.Call) -> None:
    try:
        call.expire()
    except Error:  # the runtime is being closed, which ends the call, too
        pass


async def arrival(call: _core.Call, start_progress: Callable[[], None]) -> None:
    """Returns when the call is over: with its result, or because its deadline has passed."""
    loop = asyncio.get_running_loop()
    start_progress()
    waiter = loop.create_future()
    _inbox_of(loop).expect(call, waiter)
    timer = loop.call_later(call.seconds_left, _expire, call) if call.seconds_left < _FOR_EVER else None
    try:
        await waiter
    except asyncio.CancelledError:
        call.abandon()
        raise
    finally:
        if timer is not None:
            timer.cancel()
