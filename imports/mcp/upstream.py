"""Calls the operations of an MCP server, which it starts with the first call and again when it died, and follows its lists."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, final

import anyio
import anyio.abc
from msgspec import Raw

from ...client.errors import ClientError, ConnectionFailed, InvalidReply, RemoteError
from ...client.restart import RestartingConnector, RestartPolicy
from ...client.task_group import background_tasks
from ...daemon.logs import log
from ...errors.backoff import SYSTEM_TIMING
from ...errors.exceptions import FailureError
from ...errors.failures import Internal, Unavailable
from ..model import ImportedOperation
from .listing import list_again
from .model import Command, Era, McpImport, McpOperation, Target
from .results import read_result, server_error
from .server_messages import ListKind, ServerMessages
from .session import Opener, Session
from .templates import expand

if TYPE_CHECKING:
    from ...daemon.operations.context import Context

CHANGES_SECONDS: Final = 0.5
"""After a change the lists are asked for again so much later: servers tell of each tool by itself."""
LIST_SECONDS: Final = 30.0

_OF_COMMANDS: Final = RestartPolicy()
_OF_URLS: Final = RestartPolicy(limit=1000)
"""A server behind a URL is not started but reached, so it is only asked less often."""


@final
class McpUpstream:
    """Implements `Upstream`. `credential` names that of the app which a server behind a URL gets as its bearer token.

    `era` is what the server spoke when it was read. `on_listed(found)` is called on the loop when the server's lists were asked
    for again.
    """

    def __init__(
        self,
        target: Target,
        name: str,
        *,
        era: Era,
        credential: str | None = None,
        on_listed: Callable[[McpImport], None] = lambda _: None,
    ) -> None:
        self._name = name
        self._target = target
        self._credential = credential
        self._token: str | None = None
        self.on_listed = on_listed
        server = ServerMessages(name, self._note_change)
        self._opener = Opener(target, server, era, headers=self._headers)
        self._tasks: anyio.abc.TaskGroup | None = None
        self._connector: RestartingConnector[Session] | None = None
        self._again_at = math.inf  # when a server that was given up is started again
        self._changed: anyio.Event
        self._listed: Session | None = None

    def _headers(self) -> Mapping[str, str]:
        return {} if self._token is None else {"authorization": f"Bearer {self._token}"}

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Leaving ends the server. It is started with the first call."""
        self._changed = anyio.Event()
        async with background_tasks() as self._tasks:
            self._tasks.start_soon(self._follow)
            try:
                yield
            finally:
                if self._connector is not None:
                    self._connector.close()
                self._tasks = self._connector = None

    # -- calls ----------------------------------------------------------------------------------------------------

    async def call(self, operation: ImportedOperation, arguments: dict[str, Any], ctx: Context) -> Raw:  # Any: JSON
        """The result. Raises `UpstreamError` and `FailureError`."""
        assert isinstance(operation, McpOperation), "the operations are those of this import"
        self._take_token(ctx)
        session = await self._session(operation)
        try:
            return await self._ask(session, operation, arguments, ctx)
        except ConnectionFailed as exc:
            may_repeat = operation.idempotent if exc.sent else not session.usable
            if not may_repeat:
                raise self._lost(operation, exc) from exc
        session = await self._session(operation)
        try:
            return await self._ask(session, operation, arguments, ctx)
        except ConnectionFailed as exc:
            raise self._lost(operation, exc) from exc

    async def stream(
        self, operation: ImportedOperation, arguments: dict[str, Any], ctx: Context
    ) -> AsyncGenerator[Raw, None]:
        """MCP has no subscriptions."""
        raise FailureError(Internal())
        yield Raw(b"")

    async def _ask(self, session: Session, operation: McpOperation, arguments: dict[str, Any], ctx: Context) -> Raw:
        params, name = _params_of(operation, arguments)
        try:
            text = await session.request(
                operation.method,
                params,
                name=name,
                mirrored=_mirrored(operation, arguments),
                on_progress=None if ctx.progress_token is None else ctx.progress,
            )
            return read_result(operation, text)
        except RemoteError as exc:
            raise server_error(exc) from exc
        except InvalidReply as exc:
            log.warning("import.reply_unusable", import_=self._name, operation=operation.name, reason=str(exc))
            raise FailureError(Internal()) from exc

    def _lost(self, operation: McpOperation, exc: ConnectionFailed) -> FailureError:
        """A call that may have had an effect must not be made again because of what we say."""
        log.warning("import.unavailable", import_=self._name, operation=operation.name, reason=exc.loss.reason)
        return FailureError(Internal() if exc.sent and not operation.idempotent else Unavailable(upstream=True))

    def _take_token(self, ctx: Context) -> None:
        if self._credential is not None:
            self._token = ctx.credentials.get(self._credential)
            if self._token is None:
                log.error("import.credential_missing", import_=self._name, credential=self._credential)
                raise FailureError(Internal())

    async def _session(self, operation: McpOperation) -> Session:
        """One that was usable a moment ago. Raises `FailureError`."""
        if self._tasks is None:
            raise FailureError(Unavailable(upstream=True))
        if self._connector is not None and self._connector.closed and anyio.current_time() >= self._again_at:
            self._connector = None
        if self._connector is None:
            policy = _OF_COMMANDS if isinstance(self._target, Command) else _OF_URLS
            self._connector = RestartingConnector(self._opener.open, policy, tasks=self._tasks, timing=SYSTEM_TIMING)
            self._again_at = math.inf
        try:
            session = await self._connector.connection()
        except ConnectionFailed as exc:
            if exc.loss.gave_up and self._again_at == math.inf:
                self._again_at = anyio.current_time() + _OF_COMMANDS.within
            raise self._lost(operation, exc) from exc
        if self._listed is not session:  # a server that was started again may offer something else
            self._listed = session
            self._changed.set()
        return session

    # -- changes of the lists -------------------------------------------------------------------------------------

    def _note_change(self, kind: ListKind) -> None:
        self._changed.set()

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            await anyio.sleep(CHANGES_SECONDS)
            self._changed = anyio.Event()
            session = self._listed
            if session is not None and session.usable:
                await self._list_again(session)

    async def _list_again(self, session: Session) -> None:
        try:
            with anyio.fail_after(LIST_SECONDS):
                found = await list_again(session, self._target)
        except (ClientError, FailureError, TimeoutError) as exc:
            log.warning("import.lists_unknown", import_=self._name, error=type(exc).__name__)
            return
        self.on_listed(found)


def _params_of(operation: McpOperation, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The params of the request, and what of them HTTP repeats in a header."""
    match operation.method:
        case "tools/call" | "prompts/get":
            return {"name": operation.target, "arguments": arguments}, operation.target
        case "resources/read":
            uri = expand(operation.target, arguments) if operation.target else arguments["uri"]
            return {"uri": uri}, uri
        case _:
            return arguments, ""


def _mirrored(operation: McpOperation, arguments: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for header, path in operation.mirrored.items():
        value: Any = arguments
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, bool):
            found[header] = str(value).lower()
        elif isinstance(value, str | int):
            found[header] = str(value)
    return found
