"""Calls operations of another daemon by its gateway: writes HTTP requests and reads the answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final, final
from urllib.parse import quote

from msgspec import Raw
from msgspec.structs import replace

from ...client.connect import Endpoint
from ...client.dialects import PLAIN
from ...client.errors import (
    ERROR_CLASSES,
    ClientError,
    ConnectionFailed,
    DeclaredErrors,
    InvalidReply,
    Overloaded,
    RemoteError,
    Unavailable,
)
from ...client.http.connection import open_http
from ...client.http.wire import JSON, checked_headers, status_error
from ...client.messages import OutgoingRequest
from ...client.outbound.connection import Response
from ...client.outbound.network import Destination, parse_url
from ...client.peer import Peer
from ...daemon.operations.context import LAST_EVENT_ID
from ...daemon.rpc.envelope import json_failure
from ...errors.decoders import DECODE_ERRORS, decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import Failure
from ...errors.wire import NO_CODE, CallError, ErrorObject, failure_of_call_error
from ...framing.http import SseEvent
from ..targets import Url
from .calls import hold
from .contracts import DaemonImport, read_own_document

MAX_REPLY_BYTES: Final = 10 * 1024 * 1024
"""How large a result may be, or one event."""

MAX_DOCUMENT_BYTES: Final = 64 * 1024 * 1024

MAX_CONNECTIONS: Final = 1024
"""Calls and streams at the same time; each takes a connection of its own. The gateway's own limit is the same."""

DOCUMENT: Final = "openapi.json"


def address_of(url: Url) -> Destination:
    """Parse the address of a gateway. Raises `ValueError` for a text that is none, and for a refused address."""
    given = url.url.partition("?")[0].removesuffix(DOCUMENT).rstrip("/") + "/"
    found = parse_url(given, allow_private=url.allow_private)
    if isinstance(found, str):
        raise ValueError(f"its address must be a {found}")
    return found


@asynccontextmanager
async def gateway_peer(url: Url) -> AsyncGenerator[Peer]:
    """A peer whose calls are those of a gateway's operations."""
    at, operations = address_of(url), Operations()
    async with open_http(
        at, operations, allow_private=url.allow_private, max_connections=MAX_CONNECTIONS
    ) as connection:
        yield Endpoint(PLAIN).fixed_peer(connection)


async def ask_gateway(url: Url, headers: Mapping[str, str]) -> DaemonImport:
    """Ask a gateway for the operations that it offers to a caller with these headers. Raises `ValueError` that says what is
    wrong."""
    at = address_of(url)
    document = replace(at, request_target=at.request_target + DOCUMENT)
    try:
        async with open_http(at, Operations(), allow_private=url.allow_private) as http:
            response, body = await http.get(document, headers, limit=MAX_DOCUMENT_BYTES)
    except ClientError as exc:
        raise ValueError(str(exc).removeprefix(f"{document.shown}: ")) from exc
    if response.status == 404:
        raise ValueError(f"it has no {DOCUMENT}: start it with --http-operations")
    if response.status in (401, 403):
        raise ValueError(f"it does not accept this caller (HTTP {response.status})")
    if response.status != 200:
        raise ValueError(f"it answered HTTP {response.status}")
    found = read_own_document(body)
    if found is None:
        raise ValueError(f"its {DOCUMENT} is not one that discreet writes: from_openapi takes any")
    return found


@final
class Operations:
    """An `HttpProtocol`: `POST operations/NAME` with the params, answered by the result or by a stream of events."""

    passing: tuple[type[ClientError], ...] = (ConnectionFailed, Overloaded, Unavailable)
    max_event = MAX_REPLY_BYTES
    max_waiting = 1  # who asks here has a buffer, too

    def write(self, message: OutgoingRequest) -> tuple[str, dict[str, str], bytes]:
        headers = {"content-type": JSON, **checked_headers(message.service_params or {})}
        return f"operations/{quote(message.method, safe='/')}", headers, message.params or b"{}"

    async def read_result(self, response: Response, request_id: int, errors: DeclaredErrors) -> Raw:
        try:
            body = await response.read_all(MAX_REPLY_BYTES, hold.get())
        except FailureError as exc:  # there is no memory for it
            raise _remote(exc.failure) from None
        if response.status == 204:
            return Raw(b"null")
        if response.status != 200:
            raise _told(body) or status_error(response, body)
        if response.media_type != JSON:
            raise InvalidReply("the gateway's answer is no JSON")
        return _json(body)

    def stream(self, message: OutgoingRequest, errors: DeclaredErrors) -> OperationEvents:
        return OperationEvents(message)


@final
class OperationEvents:
    """An `EventStream`. One whose events have numbers is asked for again with the last of them."""

    def __init__(self, message: OutgoingRequest) -> None:
        self._message = message
        self._last_id: str | None = (message.service_params or {}).get(LAST_EVENT_ID)
        self.ended = False
        self.is_cut_off = False

    @property
    def is_over(self) -> bool:
        return self.ended

    @property
    def is_incomplete(self) -> bool:
        return not self.ended

    def read(self, event: SseEvent) -> Raw | None:
        match event.type:
            case "completed":
                self.ended = True
                return None
            case "error":
                raise _told(event.data) or InvalidReply("the gateway's error is none")
            case _:
                self._last_id = event.id if event.has_own_id else self._last_id
                return _json(event.data)

    def request(self, request_id: int) -> OutgoingRequest | None:
        if self._last_id is None:
            return None
        params = {**(self._message.service_params or {}), LAST_EVENT_ID: self._last_id}
        return replace(self._message, service_params=params)


def _json(text: bytes) -> Raw:
    if json_failure(text) is not None:
        raise InvalidReply("the gateway's answer is no JSON")
    return Raw(text)


def _told(text: bytes) -> ClientError | None:
    """The error in a text as discreet writes it. Another one comes from what stands between: it has a status only."""
    try:
        error = decoder_for(CallError)(text)
    except DECODE_ERRORS:
        return None
    return _remote(failure_of_call_error(error), error.message)


def _remote(failure: Failure, message: str = "") -> RemoteError:
    return ERROR_CLASSES[type(failure)](failure, ErrorObject(NO_CODE, message))
