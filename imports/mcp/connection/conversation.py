"""One conversation with an MCP server: which answer belongs to which request, and what the server asks and tells.

Knows nothing of transports: a `Link` carries messages. Every answer goes to one request, or to the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final, Protocol, assert_never, final

import anyio
import msgspec
from msgspec import Raw, Struct

from ....client import messages
from ....client.errors import ConnectionFailed, ConnectionLoss, InvalidReply
from ....daemon.logs import log
from ....errors.decoders import DECODE_ERRORS, decoder_for
from ....errors.exceptions import FailureError
from ....errors.failures import Overloaded
from ....version import __version__
from .server_messages import ServerMessages

MAX_PENDING: Final = 1024
"""Requests that may wait for their answers at a time."""

MAX_REPLY_BYTES: Final = 10 * 1024 * 1024
"""How large a message of the server may be."""

CLIENT_INFO: Final = {"name": "discreet", "version": __version__}

_META: Final = "io.modelcontextprotocol/"
_BATCHING: Final = "2025-03-26"
"""The only revision in which several messages may come as one."""

_encode: Final = msgspec.json.Encoder().encode

OnProgress = Callable[[dict[str, Any]], object]  # Any: JSON

LEGACY_REVISIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions of MCP with a handshake that are spoken here, oldest first."""

MODERN_REVISION: Final = "2026-07-28"
"""The one without a handshake."""


class RpcError(Exception):
    """The server's answer was an error of JSON-RPC. `message` is the server's: never for the log."""

    def __init__(self, code: int, message: str, data: Any) -> None:  # Any: JSON
        super().__init__(f"error {code}")
        self.code = code
        self.message = message
        self.data = data


class Agreed(Struct, frozen=True):
    """What client and server have agreed on. `name`, `version` and `instructions` are the server's own words."""

    revision: str
    capabilities: Mapping[str, Any] = {}  # Any: JSON
    name: str = ""
    version: str = ""
    instructions: str = ""

    @property
    def modern(self) -> bool:
        return self.revision == MODERN_REVISION

    @property
    def tells_changes(self) -> bool:
        """Whether the server tells when any of its lists has changed."""
        return any(map(self.changes, self.capabilities))

    def changes(self, kind: str) -> bool:
        """Whether the server tells when this list has changed."""
        capability = self.capabilities.get(kind)
        return isinstance(capability, dict) and capability.get("listChanged") is True


class Request(Struct):
    """A request on its way. `name` and `mirrored` are what HTTP repeats in headers."""

    id: int
    method: str
    body: bytes
    answered: anyio.Event
    name: str = ""
    mirrored: Mapping[str, str] = {}
    on_progress: OnProgress | None = None
    result: Raw | None = None
    fault: Exception | None = None

    def settle(self, result: Raw | None, fault: Exception | None = None) -> None:
        """Answer it, once."""
        if not self.answered.is_set():
            self.result, self.fault = result, fault
            self.answered.set()


class Link(Protocol):
    """The way to the server."""

    async def exchange(self, request: Request) -> None:
        """Send a request, and return when it is answered. Raises `ConnectionFailed` and `InvalidReply`."""
        ...

    async def send(self, body: bytes) -> None:
        """Send a message that has no answer. Raises `ConnectionFailed`."""
        ...

    def post(self, body: bytes) -> None:
        """The same without waiting. What finds no room is dropped and logged."""
        ...

    def give_up(self, request: Request) -> None:
        """Nobody waits for this answer any more. Never waits."""
        ...

    async def listen(self) -> None:
        """Take what the server says by itself, as long as it may, where that needs a way of its own."""
        ...


@final
class Conversation:
    """`agreed` tells how requests are written; the handshake sets it. `server` takes what the server says by itself."""

    def __init__(self, agreed: Agreed, server: ServerMessages) -> None:
        self.agreed = agreed
        self.server: Final = server
        self.loss: ConnectionLoss | None = None
        self._link: Link
        self._pending: dict[int, Request] = {}
        self._ids = count(1)
        self._lost = anyio.Event()

    def begin(self, link: Link) -> None:
        """Talk over this link. Before all else."""
        self._link = link

    # -- as a connection that restarts ----------------------------------------------------------------------------

    @property
    def usable(self) -> bool:
        """Whether requests can be sent, as far as is known."""
        return self.loss is None

    async def wait_lost(self) -> ConnectionLoss:
        """Wait for the end and return its cause."""
        await self._lost.wait()
        assert self.loss is not None
        return self.loss

    def end(self, loss: ConnectionLoss) -> None:
        """It has ended, for this reason. Whoever waits for an answer learns it."""
        if self.loss is None:
            self.loss = loss
            self._lost.set()
            for request in [*self._pending.values()]:
                request.settle(None, ConnectionFailed(loss))

    # -- requests -------------------------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],  # Any: JSON
        *,
        name: str = "",
        mirrored: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
        trace: Mapping[str, str] | None = None,
    ) -> Raw:
        """The result, as JSON text. A cancelled request is cancelled at the server, too. `trace` names the span of the request.

        Raises `RpcError`, `ConnectionFailed`, `InvalidReply`, and `FailureError(Overloaded)` where too many wait.
        """
        if self.loss is not None:
            raise ConnectionFailed(self.loss, sent=False)
        if len(self._pending) >= MAX_PENDING:
            raise FailureError(Overloaded())
        request_id = next(self._ids)
        members = self._with_meta(params, request_id if on_progress else None, trace or {})
        body = b'{"jsonrpc":"2.0","id":%d,"method":%b,"params":%b}' % (request_id, _encode(method), _encode(members))
        request = Request(request_id, method, body, anyio.Event(), name, mirrored or {}, on_progress)
        self._pending[request_id] = request
        try:
            await self._link.exchange(request)
        finally:
            del self._pending[request_id]
            if not request.answered.is_set() and method != "initialize":
                self._link.give_up(request)
        if request.fault is not None:
            raise request.fault
        if request.result is None:
            raise InvalidReply("the server did not answer")
        return request.result

    async def listen(self) -> None:
        """Take what a server of the legacy era says by itself. Returns where nothing more will come."""
        await self._link.listen()

    async def notify(self, method: str) -> None:
        """Send a notification. Raises `ConnectionFailed`."""
        await self._link.send(_encode({"jsonrpc": "2.0", "method": method}))

    def _with_meta(self, params: Mapping[str, Any], token: int | None, trace: Mapping[str, str]) -> dict[str, Any]:
        meta: dict[str, Any] = {**trace} if token is None else {**trace, "progressToken": token}
        if self.agreed.modern:
            meta |= {
                f"{_META}protocolVersion": self.agreed.revision,
                f"{_META}clientInfo": CLIENT_INFO,
                f"{_META}clientCapabilities": {},
                f"{_META}logLevel": "info",
            }
        return {**params, "_meta": meta} if meta else dict(params)

    # -- what the server sends --------------------------------------------------------------------------------------

    def receive(self, body: bytes) -> None:
        """Take one message. What is none is logged."""
        if self.agreed.revision == _BATCHING and body.startswith(b"["):
            try:
                bodies = [bytes(each) for each in decoder_for(list[Raw])(body)]
            except DECODE_ERRORS:
                self.server.note_stray("no JSON")
                return
        else:
            bodies = [body]
        for each in bodies:
            self._receive_one(each)

    def _receive_one(self, body: bytes) -> None:
        try:
            message = messages.decode_message(body)
        except messages.DECODE_ERRORS:
            self.server.note_stray("no JSON")
            return
        match message:
            case messages.Response():
                self._take_answer(message)
            case messages.ServerRequest():
                self._link.post(self.server.answer(message))
            case messages.ServerNotification("notifications/progress", params):
                self._tell_progress(params)
            case messages.ServerNotification():
                self.server.take(message)
            case messages.InvalidMessage(int(request_id)) if request_id in self._pending:
                self.fail(request_id, "the server's message is neither a result nor an error")
            case messages.InvalidMessage():
                self.server.note_stray("no message")
            case _:
                assert_never(message)

    def fail(self, request_id: int | None, reason: str) -> None:
        """The answer to this request is of no use; None: nobody knows whose it was, so all may be waiting in vain."""
        for request in [*self._pending.values()]:
            if request_id in (None, request.id):
                request.settle(None, InvalidReply(reason))

    def _take_answer(self, message: messages.Response) -> None:
        request = None if message.id is None else self._pending.get(message.id)
        if request is None or request.answered.is_set():
            self.server.note_unexpected(unidentified=message.id is None)
        elif message.error is not None:
            request.settle(None, _rpc_error(message.error))
        else:
            request.settle(message.result)

    def _tell_progress(self, params: Raw | None) -> None:
        try:
            told = decoder_for(dict[str, Any])(params or b"{}")
        except DECODE_ERRORS:
            return
        token = told.pop("progressToken", None)
        request = self._pending.get(token) if type(token) is int else None
        if request is None or request.on_progress is None or request.answered.is_set():
            return
        told.pop("_meta", None)
        try:
            request.on_progress(told)
        except Exception as exc:  # noqa: BLE001 - the caller's side; the server's next message must not suffer
            log.error("import.progress_failed", import_=self.server.import_name, error=type(exc).__name__)
            request.on_progress = None


class _ErrorMembers(Struct):
    code: int = 0
    message: str = ""
    data: Any = None  # JSON


def _rpc_error(error: Raw) -> RpcError:
    try:
        found = decoder_for(_ErrorMembers)(error)
    except DECODE_ERRORS:
        return RpcError(0, "", None)
    return RpcError(found.code, found.message, found.data)
