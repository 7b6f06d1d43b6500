"""Talks to an MCP server: starts or reaches it, agrees with it on a revision, and asks for all that it offers.

A server of 2026-07-28 answers `server/discover`. Older ones refuse it, each in its own way, or say nothing at all; they begin
with `initialize` (2026-07-28, basic/versioning, section Backward Compatibility). The client's engine does the rest. Every list
is bounded.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, final

import anyio
import msgspec
from msgspec import Raw, Struct

from ...client.connection import INITIALIZE, Connection, open_connection
from ...client.connector import FixedConnector
from ...client.dialects import CLIENT_INFO
from ...client.errors import ClientError, ConnectionFailed, ConnectionLoss, InvalidReply, RemoteError
from ...client.incoming import Handlers
from ...client.peer import CallDefaults, Peer
from ...client.task_group import background_tasks
from ...daemon.logs import log
from ...errors.codes import METHOD_NOT_FOUND
from ...errors.decoders import DECODE_ERRORS, decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import Overloaded
from ...errors.printable import cut, printable
from ...errors.redaction import scrub
from ..model import ImportFailed
from ..targets import Command, Target, Url, ask_in_thread, run
from ..tokens import UpstreamTokens
from .model import (
    LEGACY_REVISIONS,
    MAX_REPLY_BYTES,
    MODERN_REVISION,
    Agreed,
    Era,
    Item,
    Listing,
    McpImport,
)
from .reading import read_listing
from .server_messages import KINDS, ServerMessages

if TYPE_CHECKING:
    from .http import Headers, McpHttp

MAX_PENDING: Final = 1024
"""Requests that may wait for their answers at a time."""

MAX_MESSAGE_BYTES: Final = 4 * MAX_REPLY_BYTES
"""How large a message of a process may be. One between this and the limit of replies is known to be whose answer it was."""

START_SECONDS: Final = 10.0
"""How long a server may take until it has answered the handshake."""

PROBE_SECONDS: Final = 3.0
"""How long a server may take to answer `server/discover` before it counts as one that does not know it."""

LISTEN_AGAIN_SECONDS: Final = 5.0
"""Between two requests that listen for changes."""

LISTEN_LATER_SECONDS: Final = 0.2
"""How long resources are collected for one request that listens to them."""

UNSUPPORTED_VERSION: Final = -32022

PROBING: Final = Agreed(MODERN_REVISION)
LEGACY: Final = Agreed(LEGACY_REVISIONS[-1])

_PREFIX: Final = "io.modelcontextprotocol/"

_CAPABILITIES: Final = {"extensions": {f"{_PREFIX}ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
"""A host may be behind us that shows pages of MCP Apps. Servers may keep tools with pages from clients that do not say so."""

_META: Final = {
    f"{_PREFIX}protocolVersion": MODERN_REVISION,
    f"{_PREFIX}clientInfo": CLIENT_INFO,
    f"{_PREFIX}clientCapabilities": _CAPABILITIES,
    f"{_PREFIX}logLevel": "info",
}
"""The members of each request of the modern era."""

OnProgress = Callable[[dict[str, Any]], object]  # Any: JSON


@final
class Session:
    """`agreed` tells how requests are written; the handshake sets it. `server` takes what the server says by itself."""

    def __init__(
        self,
        connection: Connection | McpHttp,
        handlers: Handlers,
        server: ServerMessages,
        *,
        http: McpHttp | None = None,
    ) -> None:
        self.server: Final = server
        self.agreed = PROBING
        self.wait_lost: Final = connection.wait_lost
        self._connection = connection
        self._http = http
        self._peer = Peer(FixedConnector(connection), handlers, CallDefaults(timeout=None))

    @property
    def usable(self) -> bool:
        """Whether requests can be sent, as far as is known."""
        return self._connection.usable

    def agree(self, agreed: Agreed) -> None:
        """Write requests in this way from now on."""
        self.agreed = agreed
        if self._http is not None:
            self._http.agreed = agreed

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],  # Any: JSON
        *,
        name: str = "",
        mirrored: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
        authorization: str = "",
    ) -> Raw:
        """The result, as JSON text. `name` and `mirrored` are what HTTP repeats in headers. Since 2026-07-28 `authorization`
        stands in the place of that of the session.

        A cancelled request is cancelled at the server, too. Raises `RemoteError`, `ConnectionFailed`, `InvalidReply`, and
        `FailureError(Overloaded)` where too many wait.
        """
        if len(self._connection.pending) >= MAX_PENDING:
            raise FailureError(Overloaded())
        headers: dict[str, str] = {}
        if self._http is not None and self.agreed.modern:
            named = {"mcp-name": name} if name else {}
            headers = {header: encoded(value) for header, value in {**named, **(mirrored or {})}.items()}
            headers |= {"authorization": authorization} if authorization else {}
        text: Raw = await self._peer.call(
            method,
            {**params, "_meta": {**params.get("_meta", {}), **_META}} if self.agreed.modern else params,
            type=Raw,
            service_params=headers,
            on_progress=None if on_progress is None else partial(_tell, on_progress),
        )
        if memoryview(text).nbytes > MAX_REPLY_BYTES:
            raise InvalidReply(f"the server's answer is larger than {MAX_REPLY_BYTES} bytes")
        return text

    async def notify(self, method: str) -> None:
        """Send a notification. Raises `ConnectionFailed`."""
        await self._peer.notify(method)

    async def follow(self) -> None:
        """Listen for changes of the server's lists and for updates of resources, until cancelled or nothing more will come."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow_lists)
            if self.agreed.updates_resources:
                if self.server.watched.held:  # by a session before this one
                    self.server.watched.note_gap()
                tasks.start_soon(self._listen_to_updates if self.agreed.modern else self._subscribe)

    async def _subscribe(self) -> None:
        """Subscribe to the resources that are watched (2025-11-25, server/resources, section Subscriptions)."""
        watched = self.server.watched
        told: frozenset[str] = frozenset()
        refused: set[str] = set()
        with watched.subscribing():
            while self.usable:
                wanted = await watched.changed_from(told)
                watched.held = True
                gone = told - wanted
                watched.drop_answers(gone)
                for uri in sorted(gone - refused):
                    await self._ask_about(uri, "resources/unsubscribe")
                refused -= gone
                for uri in sorted(wanted - told):
                    error = await self._ask_about(uri, "resources/subscribe")
                    refused |= set() if error is None else {uri}
                    watched.note_answer(uri, error)
                told = wanted

    async def _ask_about(self, uri: str, method: str) -> bytes | None:
        """Subscribe to a resource, or end that. Returns the server's error, as JSON."""
        try:
            await self.request(method, {"uri": uri})
        except RemoteError as exc:
            log.warning("import.subscription_refused", import_=self.server.import_name, number=exc.number)
            return msgspec.json.encode(shown_error(exc))
        except (ClientError, FailureError):
            pass  # the next session begins anew, where this one has ended
        return None

    async def _listen_to_updates(self) -> None:
        """Have a request that listens to the resources that are watched (2026-07-28, basic/patterns/subscriptions)."""
        watched = self.server.watched
        heard: frozenset[str] = frozenset()
        while self.usable:
            wanted = watched.uris
            if not wanted:
                await watched.changed_from(wanted)
                continue
            watched.held = True
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(
                    self._listen, {"notifications": {"resourceSubscriptions": sorted(wanted)}}, watched.note_gap
                )
                for uri in wanted & heard:  # nothing listened for a moment
                    watched.note_update(uri)
                await watched.changed_from(wanted)
                await anyio.sleep(LISTEN_LATER_SECONDS)
                tasks.cancel_scope.cancel()
            heard = wanted

    async def _follow_lists(self) -> None:
        if not self.agreed.modern:
            if self._http is not None:
                await self._http.listen()
            return
        wanted = {f"{kind}ListChanged": True for kind in KINDS if self.agreed.changes(kind)}
        if wanted:
            await self._listen({"notifications": wanted}, self.server.note_gap)

    async def _listen(self, wanted: Mapping[str, Any], note_gap: Callable[[], None]) -> None:
        """Listen again whenever the server has ended it."""
        while self.usable:
            try:
                await self.request("subscriptions/listen", wanted)
            except RemoteError:
                return  # it knows no such thing after all
            except (ClientError, FailureError):
                pass  # it may be there again soon
            await anyio.sleep(LISTEN_AGAIN_SECONDS)
            note_gap()


MAX_ERROR_TEXT: Final = 1000
"""Characters of what a server says about an error of its own."""


def shown_error(exc: RemoteError) -> dict[str, Any]:  # Any: JSON
    """The details of an error that a server answers with, as callers are told them."""
    return {"code": exc.number, "message": exc.error.message[:MAX_ERROR_TEXT]}


def _tell(on_progress: OnProgress, told: Any) -> None:  # Any: JSON
    if isinstance(told, dict):
        told.pop("_meta", None)
        on_progress(told)


def encoded(value: str) -> str:
    """A value as a header may hold it (2026-07-28, basic/transports/streamable-http, section Value Encoding)."""
    plain = value.isascii() and value.isprintable() and value == value.strip()
    if plain and not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    return f"=?base64?{b64encode(value.encode()).decode()}?="


# -- opening -----------------------------------------------------------------------------------------------------------


@final
class Opener:
    """Opens sessions with a server. `headers()` are those of each request by HTTP, beside those of the target.

    `era` is what the server spoke last, None if that is unknown: then the first session finds out.
    """

    def __init__(
        self,
        target: Target,
        server: ServerMessages,
        era: Era | None = None,
        *,
        headers: Headers | None = None,
        seconds: float = START_SECONDS,
    ) -> None:
        self._target = target
        self._server = server
        self._headers = headers
        self._seconds = seconds
        self.era = era

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Session]:
        """A session that is through the handshake. Raises `ConnectionFailed`."""
        deadline = anyio.current_time() + self._seconds
        for begin in (self._initialize,) if self.era == "legacy" else (self._probe, self._initialize):
            usable = False
            async with self._linked() as session:
                with anyio.CancelScope(deadline=deadline) as scope:
                    usable = await begin(session)
                if scope.cancelled_caught:
                    raise ConnectionFailed(ConnectionLoss(f"it did not answer within {self._seconds:g} s"))
                if usable:
                    async with background_tasks() as tasks:
                        tasks.start_soon(session.follow)
                        yield session
                    return

    async def _probe(self, session: Session) -> bool:
        """Begin with a question that not every server knows. Returns False if the server's state is unknown afterwards."""
        probed = await discover(session)
        if probed == "modern":
            self.era = "modern"
        elif probed == "silent" and (isinstance(self._target, Command) or not session.usable):
            return False
        return probed == "modern" or await self._initialize(session)

    async def _initialize(self, session: Session) -> bool:
        await initialize(session)
        self.era = "legacy"
        return True

    @asynccontextmanager
    async def _linked(self) -> AsyncGenerator[Session]:
        handlers = self._server.handlers()
        async with linked(self._target, self._server, handlers, headers=self._headers) as connection:
            http = None if isinstance(connection, Connection) else connection
            yield Session(connection, handlers, self._server, http=http)


@asynccontextmanager
async def linked(
    target: Target, server: ServerMessages, handlers: Handlers, *, headers: Headers | None = None
) -> AsyncGenerator[Connection | McpHttp]:
    """A connection for as long as the block runs; a command is started for it. Raises `ConnectionFailed`."""
    if isinstance(target, Command):
        async with (
            run(target, server.take_line) as process,
            open_connection(
                process, handlers, framing="newline", explain=process.explain, max_message=MAX_MESSAGE_BYTES
            ) as connection,
        ):
            yield connection
        return
    from .http import open_http  # late: processes need none

    async with open_http(target, handlers, server, headers=headers or _no_headers) as http:
        yield http


async def _no_headers() -> Mapping[str, str]:
    return {}


# -- the handshake -----------------------------------------------------------------------------------------------------


class _About(Struct, frozen=True):
    name: str = ""
    version: str = ""


class _Discovered(Struct, rename="camel"):
    supported_versions: list[str]
    capabilities: dict[str, Any] = {}  # JSON
    instructions: str = ""
    _meta: dict[str, Any] = {}


class _Welcome(Struct, rename="camel"):
    protocol_version: str
    capabilities: dict[str, Any] = {}  # JSON
    server_info: _About = _About()
    instructions: str = ""


Probed: TypeAlias = Literal["modern", "legacy", "silent"]
"""A server's answer to `server/discover`. The state of a silent one is unknown."""


async def discover(session: Session) -> Probed:
    """Ask a server whether it is of the modern revision, and agree with it if so.

    Raises `ConnectionFailed`, also for one that speaks only unknown revisions.
    """
    session.agree(PROBING)
    try:
        with anyio.fail_after(PROBE_SECONDS):
            text = await session.request("server/discover", {})
        found = decoder_for(_Discovered)(text)
    except RemoteError as exc:
        if exc.number == UNSUPPORTED_VERSION and isinstance(exc.data, dict):
            _require_known(exc.data.get("supported"))
        return "legacy"
    except (InvalidReply, *DECODE_ERRORS):
        return "legacy"
    except (TimeoutError, ConnectionFailed):
        return "silent"
    if MODERN_REVISION not in found.supported_versions:
        _require_known(found.supported_versions)
        return "legacy"
    about = found._meta.get(f"{_PREFIX}serverInfo")
    named = about if isinstance(about, dict) else {}
    name, version = (given if isinstance(given := named.get(each), str) else "" for each in ("name", "version"))
    session.agree(Agreed(MODERN_REVISION, found.capabilities, name, version, found.instructions))
    return "modern"


def _require_known(supported: object) -> None:
    if not isinstance(supported, list) or not any(each in LEGACY_REVISIONS for each in supported):
        raise ConnectionFailed(ConnectionLoss("it speaks no revision of MCP that is known here"))


async def initialize(session: Session) -> None:
    """Agree with a server of the legacy era. Raises `ConnectionFailed`."""
    session.agree(LEGACY)
    params = {"protocolVersion": LEGACY.revision, "capabilities": _CAPABILITIES, "clientInfo": CLIENT_INFO}
    try:
        welcome = decoder_for(_Welcome)(await session.request(INITIALIZE, params))
    except RemoteError as exc:
        unknown = "it is no MCP server: it does not know initialize"
        reason = unknown if exc.number == METHOD_NOT_FOUND else f"it refused initialize with the error {exc.number}"
        raise ConnectionFailed(ConnectionLoss(reason)) from exc
    except InvalidReply as exc:
        raise ConnectionFailed(ConnectionLoss(f"it did not answer initialize: {exc}")) from exc
    except DECODE_ERRORS as exc:
        raise ConnectionFailed(ConnectionLoss("its answer to initialize is not as MCP has it")) from exc
    _require_known([welcome.protocol_version])
    about = welcome.server_info
    session.agree(
        Agreed(welcome.protocol_version, welcome.capabilities, about.name, about.version, welcome.instructions)
    )
    await session.notify("notifications/initialized")


MAX_PAGES: Final = 1000
MAX_ITEMS: Final = 10_000
"""Of one list."""
MAX_LIST_BYTES: Final = 64 * 1024 * 1024

SHOWN_CHARACTERS: Final = 200
"""Of the last line of the server's stderr."""

READ_SECONDS: Final = 10.0
"""How long it may take until a server has started and listed what it offers."""


def read_mcp(target: Target, name: str, *, token: str | None = None, seconds: float = READ_SECONDS) -> McpImport:
    """Start a server, ask it for its lists, and end it. Blocks."""
    server = ServerMessages(name)

    async def headers() -> Mapping[str, str]:
        return {} if not token else {"authorization": f"Bearer {await tokens.for_itself(token)}"}

    tokens = UpstreamTokens(name)
    opener = Opener(target, server, headers=headers, seconds=seconds)

    async def ask() -> McpImport:
        async with opener.open() as session:
            return await list_again(session, target)

    try:
        return ask_in_thread(ask, seconds)
    except TimeoutError:
        reason = f"it did not answer within {seconds:g} s"
    except RemoteError as exc:
        reason = f"it refused to list what it offers with the error {exc.number}"
    except FailureError:
        reason = "it did not list what it offers"
    except ClientError as exc:
        reason = str(exc)
    told = f"; its stderr ends: {scrub(cut(server.last_line, SHOWN_CHARACTERS))}" if server.last_line else ""
    about = reason.removeprefix(f"{target.shown}: ")
    raise ImportFailed(f"MCP server {target.shown}: {printable(about)}{told}")


async def list_again(session: Session, target: Target) -> McpImport:
    """Ask a server for its lists once more. Raises as `list_all` does."""
    return read_listing(await list_all(session), session.agreed, by_http=isinstance(target, Url))


async def list_all(session: Session) -> Listing:
    """All lists. Raises `RemoteError`, `ConnectionFailed`, and `InvalidReply` for a list that has no end or is none."""
    offered = session.agreed.capabilities
    reads = "resources" in offered
    return Listing(
        tools=await _list(session, "tools") if "tools" in offered else (),
        resources=await _list(session, "resources") if reads else (),
        templates=await _list(session, "resources/templates", "resourceTemplates") if reads else (),
        prompts=await _list(session, "prompts") if "prompts" in offered else (),
    )


async def _list(session: Session, kind: str, member: str = "") -> tuple[Item, ...]:
    method, member = f"{kind}/list", member or kind
    found: list[Item] = []
    size = 0
    cursors: set[str] = set()
    params: dict[str, str] = {}
    for _ in range(MAX_PAGES):
        try:
            text = await session.request(method, params)
        except RemoteError as exc:
            if exc.number == METHOD_NOT_FOUND:
                return tuple(found)  # many servers have resources but no templates
            raise
        items, cursor = _page(text, method, member)
        size += memoryview(text).nbytes
        found += items
        if not cursor:
            return tuple(found)
        if cursor in cursors:
            raise InvalidReply(f"{method} names the same page twice")
        if len(found) > MAX_ITEMS or size > MAX_LIST_BYTES:
            break
        cursors.add(cursor)
        params = {"cursor": cursor}
    raise InvalidReply(f"{method} has more than {MAX_PAGES} pages, {MAX_ITEMS} entries or {MAX_LIST_BYTES} bytes")


def _page(text: Raw, method: str, member: str) -> tuple[list[Item], str]:
    try:
        members = decoder_for(dict[str, Any])(text)
    except DECODE_ERRORS:
        members = {}
    items = members.get(member)
    cursor = members.get("nextCursor") or ""
    if not isinstance(items, list) or not isinstance(cursor, str):
        raise InvalidReply(f"the answer to {method} is no list")
    return [item for item in items if isinstance(item, dict)], cursor
