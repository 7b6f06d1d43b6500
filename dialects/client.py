"""Calls servers of a protocol by typed methods, and gives what they send to typed handlers. Knows no protocol.

`tools/protocols` writes, from each schema, a class of methods (`Request`, `Notification`), one of handlers (`Answer`,
`Listener`), and the messages of the handlers (`Taken`). Types stand there as texts, so that the structs of a method load when
it is first used. `discreet.lsp`, `discreet.mcp` and `discreet.acp` export what comes of it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Generic,
    NamedTuple,
    Protocol,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    final,
    get_args,
    get_origin,
    overload,
)

import msgspec
from msgspec import Struct

from ..client.connect import attach, connect
from ..client.errors import ConnectionFailed, ConnectionLoss, InvalidReply
from ..client.peer import DEFAULT_TIMEOUT, CallOptions, Peer
from ..client.validation import StrPath, check_callback, check_instance, check_plain_function, check_unused
from ..errors.decoders import DECODE_ERRORS, convert
from ..errors.exceptions import FailureError
from ..errors.failures import InvalidParams
from .structs import StructUnion

if TYPE_CHECKING:
    from ..client.blocking import LoopThread
    from ..client.dialects import Dialect
    from ..client.process import EndBounds
    from ..client.validation import StderrMode
    from ..framing.transports.interface import ByteTransport

P = TypeVar("P")
R = TypeVar("R")
P_contra = TypeVar("P_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

Answer: TypeAlias = Callable[[P], Awaitable[R] | R]
"""Answers a request: a coroutine function, or a plain one that returns at once (`Peer.on_request`)."""

Listener: TypeAlias = Callable[[P], object]
"""Is called with a notification: a plain function that returns at once (`Peer.on_notification`)."""


class ServerOptions(TypedDict, total=False):
    """The options of a typed client that are those of `discreet.client.connect`. All but `timeout` are of a command."""

    cwd: StrPath | None
    env: Mapping[str, str] | None
    stderr: StderrMode
    bounds: EndBounds
    timeout: float | None


class Taken(NamedTuple):
    """A message that a handler takes: its method, the type of its params, and what a client with the handler announces."""

    method: str
    params: str
    answers: bool
    capabilities: tuple[str, ...] = ()


class AsyncRequest(Protocol[P_contra, R_co]):
    """Sends a request. Takes the options of `Peer.call`, and raises as it does."""

    async def __call__(self, params: P_contra, /, **options: Unpack[CallOptions]) -> R_co: ...


class BlockingRequest(Protocol[P_contra, R_co]):
    """Sends a request and blocks until it is answered."""

    def __call__(self, params: P_contra, /, **options: Unpack[CallOptions]) -> R_co: ...


class AsyncNotification(Protocol[P_contra]):
    """Sends a notification. Raises as `Peer.notify` does."""

    async def __call__(self, params: P_contra, /) -> None: ...


class BlockingNotification(Protocol[P_contra]):
    """Sends a notification and blocks until the server's input has taken it."""

    def __call__(self, params: P_contra, /) -> None: ...


@final
class Request(Generic[P, R]):
    """A request as an attribute of servers. `result` is the type of the result, as a text."""

    def __init__(self, method: str, result: str) -> None:
        self.method: Final = method
        self.result: Final = result

    @overload
    def __get__(self, server: None, owner: type) -> Self: ...

    @overload
    def __get__(self, server: AsyncCaller, owner: type) -> AsyncRequest[P, R]: ...

    @overload
    def __get__(self, server: BlockingCaller, owner: type) -> BlockingRequest[P, R]: ...

    def __get__(self, server: AsyncCaller | BlockingCaller | None, owner: type) -> Any:
        return self if server is None else partial(server.request, self)


@final
class Notification(Generic[P]):
    """A notification as an attribute of servers."""

    def __init__(self, method: str) -> None:
        self.method: Final = method

    @overload
    def __get__(self, server: None, owner: type) -> Self: ...

    @overload
    def __get__(self, server: AsyncCaller, owner: type) -> AsyncNotification[P]: ...

    @overload
    def __get__(self, server: BlockingCaller, owner: type) -> BlockingNotification[P]: ...

    def __get__(self, server: AsyncCaller | BlockingCaller | None, owner: type) -> Any:
        return self if server is None else partial(server.notify, self)


Reader: TypeAlias = Callable[[Any], Any]
"""Makes structs of what msgspec leaves as it is: the objects of a `StructUnion`."""


@final
class Types:
    """The types of a protocol by their texts, each loaded when it is first asked for. `find` returns a struct by its name."""

    def __init__(self, find: Callable[[str], Any]) -> None:
        self._find = find
        self._read: dict[str, tuple[Any, Reader | None]] = {}

    def __getitem__(self, name: str) -> Any:
        return _PLAIN[name] if name in _PLAIN else self._find(name)

    def of(self, text: str) -> tuple[Any, Reader | None]:
        """Return a type, and what reads its values after msgspec; None where nothing is left to read."""
        if text not in self._read:
            found = eval(text, {"__builtins__": {}}, cast("Mapping[str, object]", self))  # of the generated texts alone
            self._read[text] = found, _reader(found)
        return self._read[text]

    def params(self, taken: Taken, value: Any) -> Any:  # JSON
        """Return the params of a message as its struct. Raises `FailureError`: the server is told of its mistake."""
        kind, reader = self.of(taken.params)
        if kind is None:
            return None
        try:
            found = convert({} if value is None else value, kind)
            return reader(found) if reader else found
        except DECODE_ERRORS:
            raise FailureError(InvalidParams("$", taken.params, "other params")) from None


_PLAIN: Final[dict[str, Any]] = {
    "Any": Any,
    "None": None,
    **{each.__name__: each for each in (bool, dict, float, int, list, str)},
}


def _reader(of: Any) -> Reader | None:
    union = next((each for each in get_args(of)[1:] if isinstance(each, StructUnion)), None)
    if get_origin(of) is Annotated and union is not None:
        return union.read
    parts = [found for part in get_args(of) if part is not NoneType and (found := _reader(part))]
    if len(parts) != 1:
        return None
    read = parts[0]
    if get_origin(of) is list:
        return lambda value: [read(item) for item in value]
    return lambda value: None if value is None else read(value)


class AsyncCaller:
    """The server at the other end, for the length of the block. `peer` calls what the protocol does not name. `welcome` is the
    server's answer to `initialize`, `capabilities` what it announces there, both as JSON."""

    def __init__(self, peer: Peer, opening: Opening) -> None:
        self.peer: Final = peer
        self.welcome: Final[Mapping[str, Any]] = opening.welcome  # Any: JSON
        self.capabilities: Final[Mapping[str, Any]] = (
            self.welcome.get("capabilities") or self.welcome.get("agentCapabilities") or {}
        )
        self._types = opening.types

    async def request(self, request: Request[Any, R], params: object, /, **options: Unpack[CallOptions]) -> R:
        """Send a request of the protocol; `server.tools_call(params)` is `server.request(Server.tools_call, params)`.

        Raises as `Peer.call` does, and `InvalidReply` for a result that the protocol does not know.
        """
        kind, reader = self._types.of(request.result)
        result = await self.peer.call(request.method, params, type=NoneType if kind is None else kind, **options)
        try:
            return cast("R", reader(result) if reader else result)
        except DECODE_ERRORS:
            raise InvalidReply(f"the answer to {request.method} does not fit {request.result}") from None

    async def notify(self, notification: Notification[Any], params: object, /) -> None:
        """Send a notification of the protocol. Raises as `Peer.notify` does."""
        await self.peer.notify(notification.method, params)


class BlockingCaller:
    """The server at the other end, for programs without async. Any thread may use it, as it may `BlockingPeer`."""

    def __init__(self, server: AsyncCaller, loop: LoopThread) -> None:
        self.welcome: Final = server.welcome
        self.capabilities: Final = server.capabilities
        self._server = server
        self._loop = loop

    def request(self, request: Request[Any, R], params: object, /, **options: Unpack[CallOptions]) -> R:
        """Send a request: see `AsyncCaller.request`."""
        return self._loop.run(partial(self._server.request, request, params, **options))

    def notify(self, notification: Notification[Any], params: object, /) -> None:
        """Send a notification: see `AsyncCaller.notify`."""
        self._loop.run(partial(self._server.notify, notification, params))


Given: TypeAlias = list[tuple[Taken, Callable[[Any], Any]]]
"""The handlers of a program, each with its message."""


def given(kind: type[Struct], handlers: Struct, taken: Mapping[str, Taken]) -> Given:
    """Return the handlers that are there. Raises `TypeError` for other handlers than those of the protocol."""
    check_instance("handlers", handlers, kind)
    named = [(taken[name], getattr(handlers, name)) for name in kind.__struct_fields__]
    found = [(message, handler) for message, handler in named if handler is not None]
    for message, handler in found:
        (check_callback if message.answers else check_plain_function)(f"the handler of {message.method}", handler)
    return found


@final
class Opening:
    """The handshake of a typed client. `welcome` is the answer, once it has come.

    `hello` are the params of `initialize`, `then` the notification after it. `check` raises `ConnectionFailed` for an answer
    with which the client can't go on. With `in_threads`, requests are answered in worker threads.
    """

    def __init__(
        self,
        types: Types,
        handlers: Given,
        hello: Mapping[str, Any],
        *,
        then: str | None = None,
        check: Callable[[Mapping[str, Any]], None] | None = None,
        in_threads: bool = False,
    ) -> None:
        self.types: Final = types
        self.welcome: dict[str, Any] = {}
        self._handlers = handlers
        self._hello = hello
        self._then = then
        self._check = check
        self._in_threads = in_threads

    async def shake_hands(self, peer: Peer) -> None:
        """Register the handlers and greet the server. Raises as `Peer.call` does, and what `check` raises."""
        for message, handler in self._handlers:
            if message.answers:
                peer.on_request(message.method, self._answering(message, handler))
            else:
                peer.on_notification(message.method, self._listening(message, handler))
        self.welcome = await peer.call("initialize", self._hello, type=dict[str, Any])
        if self._check is not None:
            self._check(self.welcome)
        if self._then is not None:
            await peer.notify(self._then, {})

    def _answering(self, message: Taken, handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
        if self._in_threads:
            from ..client.blocking import in_thread  # late: most clients are asynchronous

            handler = in_thread(handler)
        return lambda params: handler(self.types.params(message, params))

    def _listening(self, message: Taken, handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def listen(params: Any) -> None:
            try:
                value = self.types.params(message, params)
            except FailureError:
                raise ValueError(f"the params of the server's {message.method} are no {message.params}") from None
            handler(value)

        return listen


def with_capabilities(capabilities: Mapping[str, Any], paths: Sequence[str], value: Any = True) -> dict[str, Any]:
    """Return capabilities with a value at each of these paths where they have none."""
    found = dict(capabilities)
    for path in paths:
        name, _, rest = path.partition(".")
        if rest:
            found[name] = with_capabilities(found.get(name) or {}, [rest], value)
        else:
            found.setdefault(name, value)
    return found


def announced(
    capabilities: Mapping[str, Any], handlers: Given, table: Mapping[str, tuple[str, object]]
) -> Mapping[str, Any]:
    """Return capabilities with those of the handlers. `table` has the path and the value for each method that has one."""
    for message, _ in handlers:
        if message.method in table:
            path, value = table[message.method]
            capabilities = with_capabilities(capabilities, [path], value)
    return capabilities


def refuse(reason: str) -> None:
    """Raise `ConnectionFailed` for an answer to the handshake."""
    raise ConnectionFailed(ConnectionLoss(reason))


@asynccontextmanager
async def connected(
    server: Sequence[StrPath] | ByteTransport, dialect: Dialect, opening: Opening, options: ServerOptions
) -> AsyncGenerator[Peer]:
    """Connect to a command or over a byte transport, with this handshake. Raises as `connect` and `attach` do."""
    dialect = msgspec.structs.replace(dialect, handshake=opening.shake_hands)
    if isinstance(server, str | Sequence):
        if isinstance(server, str):
            raise TypeError(f"server must be a command as a list, or a byte transport, not {server!r}")
        async with connect(server, dialect=dialect, **options) as peer:
            yield peer
        return
    check_unused("a command", **{name: value for name, value in options.items() if name != "timeout"})
    async with attach(server, dialect=dialect, timeout=options.get("timeout", DEFAULT_TIMEOUT)) as peer:
        yield peer
