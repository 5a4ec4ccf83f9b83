# SPDX-License-Identifier: BSD-3-Clause
"""Functions that are called when calls are over, on a thread of Python's own: handlers' fibers hold no Python."""
from __future__ import annotations

import itertools
import logging
import select
from typing import Any, Callable

from nessie import _core

_log = logging.getLogger("nessie")
_END = 0


class Callbacks:
    """Those of one runtime."""

    def __init__(self) -> None:
        self._mailbox = _core.Mailbox()
        self._tokens = itertools.count(_END + 1)
        # The future, and with it the call, stays until it is over.
        self._expected: dict[int, tuple[Any, Callable[[Any], object]]] = {}

    def add(self, future: Any, call: _core.Call, function: Callable[[Any], object]) -> None:
        token = next(self._tokens)
        self._expected[token] = future, function
        call.tell_also(self._mailbox, token)

    def run(self) -> None:
        """The thread's life."""
        poll = select.poll()
        poll.register(self._mailbox.fileno(), select.POLLIN)
        while True:
            poll.poll()
            for token in self._mailbox.take_all():
                if token == _END:
                    return
                self._deliver(*self._expected.pop(token))

    def _deliver(self, future: Any, function: Callable[[Any], object]) -> None:
        try:
            function(future)
        except BaseException:  # one that ends a program ends no other callback
            _log.exception("a callback of a call that is over failed")

    def end(self) -> None:
        """The thread ends when it has delivered what there is by now."""
        self._mailbox.put(_END)
