# SPDX-License-Identifier: BSD-3-Clause
"""What the clients and servers of `nessie idl --language python` are made of: calls with typed arguments and results."""
from __future__ import annotations

import abc
import functools
from typing import Any, Callable, ClassVar, Optional, Sequence, TypeVar

from nessie import xdr
from nessie.errors import BadMessage, Internal, InvalidArgument, Scope
from nessie.nssi import Buffer, CallOptions, Future, HandlerKind, Request, Rights, Runtime, Service

F = TypeVar("F", bound=Callable[..., Any])


class Procedure:
    """One operation of an interface. result: None for void. rights: what a bulk parameter's buffer must allow; 0: none."""

    def __init__(self, number: int, name: str, arguments: Sequence[Any], result: Any, rights: int = 0):
        self.number, self.name, self.rights = number, name, Rights(rights)
        self._arguments = [xdr.codec_of(each) for each in arguments]
        self._result = [] if result is None else [xdr.codec_of(result)]

    def encode_arguments(self, values: Sequence[Any]) -> bytes:
        return xdr.encode_all(self._arguments, values) if values else b""

    def decode_arguments(self, data: bytes) -> list[Any]:
        return xdr.decode_all(self._arguments, data)

    def encode_result(self, value: Any) -> bytes:
        """Internal: it breaks a rule of the interface, which is the handler's fault."""
        try:
            if not self._result and value is not None:
                raise InvalidArgument("there is a result where none should be")
            return xdr.encode_all(self._result, [value] if self._result else [])
        except InvalidArgument as error:
            raise Internal(f"{self.name} has no such result: {error.message}", scope=Scope.SERVICE) from error

    def decode_result(self, data: bytes) -> Any:
        if self._result:
            return xdr.decode_all(self._result, data)[0]
        if data:
            raise BadMessage("there is a result where none should be")
        return None

    def check_data(self, data: Optional[Buffer]) -> None:
        if self.rights and (not isinstance(data, Buffer) or not data.is_valid or self.rights & ~data.rights):
            raise InvalidArgument(
                "the bulk buffer is not registered, or not with the rights that the interface asks for: REMOTE_READ for `in`, "
                "REMOTE_WRITE for `out`"
            )


class Interface:
    """A version of a program."""

    def __init__(self, program: int, version: int, procedures: Sequence[Procedure]):
        self.program, self.version, self.procedures = program, version, procedures


class Client:
    """The calling side of one interface. What its methods give for a one-way call is None."""

    INTERFACE: ClassVar[Interface]

    def __init__(self, runtime: Runtime, peer: int, provider: int = 0):
        self.runtime = runtime
        self.service = Service(peer, self.INTERFACE.program, self.INTERFACE.version, provider)
        self._procedures = self.INTERFACE.procedures

    def _call(self, index: int, arguments: Sequence[Any], data: Optional[Buffer], options: CallOptions) -> Any:
        it = self._procedures[index]
        if it.rights:
            it.check_data(data)
        args = it.encode_arguments(arguments)
        result = self.runtime.call_and_wait(self.service, it.number, args, data=data, **options)
        return None if options.get("one_way") else it.decode_result(result)

    def _start(self, index: int, arguments: Sequence[Any], data: Optional[Buffer], options: CallOptions) -> Future[Any]:
        it = self._procedures[index]
        it.check_data(data)
        args = it.encode_arguments(arguments)
        decode = _nothing if options.get("one_way") else it.decode_result
        return self.runtime.start(self.service, it.number, args, decode, data=data, **options)


def _nothing(_: bytes) -> Any:
    return None


def short(method: F) -> F:
    """Marks a server's method as HandlerKind.SHORT: it is called where the request arrived, and must not wait for long."""
    setattr(method, "nessie_kind", HandlerKind.SHORT)
    return method


class Server(abc.ABC):
    """The serving side of one interface: its methods are the operations. A method that raises an Error answers with it."""

    INTERFACE: ClassVar[Interface]

    def kind_of(self, op: int) -> HandlerKind:
        """FIBER, unless the method is marked as @short."""
        name = next(it.name for it in self.INTERFACE.procedures if it.number == op)
        return getattr(getattr(self, name), "nessie_kind", HandlerKind.FIBER)

    def add_to(self, runtime: Runtime, provider: int = 0) -> None:
        """Offers all operations, before runtime.run(). Exists: the provider is taken."""
        for it in self.INTERFACE.procedures:
            runtime.add_operation(
                self.INTERFACE.program,
                self.INTERFACE.version,
                it.number,
                functools.partial(_carry_out, it, getattr(self, it.name)),
                name=it.name,
                provider=provider,
                kind=self.kind_of(it.number),
            )


def _carry_out(it: Procedure, method: Callable[..., Any], request: Request) -> bytes:
    arguments = it.decode_arguments(request.args)
    return it.encode_result(method(request, *arguments))
