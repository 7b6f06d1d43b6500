"""Calls the operations of an MCP server, which it starts with the first call and again when it died, and follows its lists.

Reads what tools, resources and prompts answer.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final, final

import anyio
import msgspec
from msgspec import Meta, Raw, Struct

from ...client.connector import RestartingConnector
from ...client.errors import ClientError, ConnectionFailed, InvalidReply, RemoteError
from ...client.task_group import background_tasks
from ...daemon.declarations import CONTENT, OF_SERVERS
from ...daemon.logs import log
from ...errors.codes import INTERNAL_ERROR
from ...errors.decoders import DECODE_ERRORS, decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import Failure, Internal, InvalidParams, Overloaded, TimedOut, Unavailable
from ...errors.printable import cut
from ..model import ImportedOperation, Schema, UpstreamError
from ..targets import Target, started_again, trace_passed_on
from ..tokens import UpstreamTokens, exchanges
from .model import Era, McpImport, McpOperation
from .reading import SERVER_ERROR, TOOL_ERROR, expand
from .server_messages import ListKind, ServerMessages
from .session import Opener, Session, list_again, shown_error

if TYPE_CHECKING:
    from ...daemon.operations.context import Context
    from .watched import WatchedResources

CHANGES_SECONDS: Final = 0.5
"""After a change the lists are asked for again so much later: servers tell of each tool by itself."""
LIST_SECONDS: Final = 30.0
WATCH_AGAIN_SECONDS: Final = 5.0
"""Between two attempts to reach a server whose resources are watched."""

ATTEMPTS: Final = 2
"""How often a call is made that found no server, or whose server died though it may be repeated."""


@final
class McpUpstream:
    """Implements `Upstream`. `credential` names that of the app which a server behind a URL gets as its bearer token.

    `era` is what the server spoke when it was read. `on_listed(found)` is called on the loop when the server's lists were asked
    for again. While any resource is `watched`, the server is kept running.
    """

    def __init__(
        self,
        target: Target,
        name: str,
        *,
        era: Era,
        credential: str | None = None,
        on_listed: Callable[[McpImport], None] = lambda _: None,
        watched: WatchedResources | None = None,
    ) -> None:
        self._name = name
        self._target = target
        self._credential = credential
        self._value: str | None = None
        self._tokens = UpstreamTokens(name)
        self.on_listed = on_listed
        server = ServerMessages(name, self._note_change, watched)
        self._watched = server.watched
        self._opener = Opener(target, server, era, headers=self._headers)
        self._connector: RestartingConnector[Session] | None = None
        self._changed: anyio.Event
        self._listed: Session | None = None

    async def _headers(self) -> Mapping[str, str]:
        token = self._value
        return {} if token is None else {"authorization": f"Bearer {await self._tokens.for_itself(token)}"}

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Leaving ends the server. It is started with the first call."""
        self._changed = anyio.Event()
        async with background_tasks() as tasks, started_again(self._opener.open) as self._connector:
            tasks.start_soon(self._follow)
            tasks.start_soon(self._keep_running, self._connector)
            try:
                yield
            finally:
                self._connector = None

    # -- calls ----------------------------------------------------------------------------------------------------

    async def call(self, operation: ImportedOperation, arguments: dict[str, Any], ctx: Context) -> Raw:  # Any: JSON
        """The result. Raises `UpstreamError` and `FailureError`."""
        assert isinstance(operation, McpOperation), "the operations are those of this import"
        authorization = await self._authorization(ctx)
        for attempt in range(ATTEMPTS):
            session = await self._session(operation)
            try:
                return await self._ask(session, operation, arguments, ctx, authorization)
            except ConnectionFailed as exc:
                may_repeat = operation.idempotent if exc.sent else not session.usable
                if attempt + 1 == ATTEMPTS or not may_repeat:
                    raise self._lost(operation, exc) from exc
        raise AssertionError("the last attempt returns or raises")

    async def stream(
        self, operation: ImportedOperation, arguments: dict[str, Any], ctx: Context
    ) -> AsyncGenerator[Raw, None]:
        """MCP has no subscriptions."""
        raise FailureError(Internal())
        yield Raw(b"")

    async def _ask(
        self,
        session: Session,
        operation: McpOperation,
        arguments: dict[str, Any],
        ctx: Context,
        authorization: str,
    ) -> Raw:
        if authorization and not session.agreed.modern:  # a session belongs to one caller
            log.error("import.no_exchange", import_=self._name, operation=operation.name)
            raise FailureError(Internal())
        params, name = params_of(operation, arguments)
        if trace := trace_passed_on(ctx.service_params):
            params = {**params, "_meta": trace}
        try:
            text = await session.request(
                operation.method,
                params,
                name=name,
                mirrored=mirrored_values(operation.mirrored, arguments),
                on_progress=None if ctx.progress_token is None else ctx.progress,
                authorization=authorization,
            )
            return read_result(operation, text)
        except RemoteError as exc:
            raise server_error(exc) from exc
        except InvalidReply as exc:
            log.warning("import.reply_unusable", import_=self._name, operation=operation.name, reason=str(exc))
            raise FailureError(_status_failure(exc) or Internal()) from exc

    def _lost(self, operation: McpOperation, exc: ConnectionFailed) -> FailureError:
        """A call that may have had an effect must not be made again because of what we say."""
        log.warning("import.unavailable", import_=self._name, operation=operation.name, reason=exc.loss.reason)
        if (refused := _status_failure(exc)) is not None:
            return FailureError(refused)
        return FailureError(Internal() if exc.sent and not operation.idempotent else Unavailable(upstream=True))

    async def _authorization(self, ctx: Context) -> str:
        """Take the credential as it is now, and return the header of a call that is made as its caller; empty for another."""
        if self._credential is None:
            return ""
        self._value = ctx.credentials.get(self._credential)
        if self._value is None:
            log.error("import.credential_missing", import_=self._name, credential=self._credential)
            raise FailureError(Internal())
        if not exchanges(self._value):
            return ""
        return f"Bearer {await self._tokens.for_call(self._value, ctx)}"

    async def _session(self, operation: McpOperation) -> Session:
        """One that was usable a moment ago. Raises `FailureError`."""
        if self._connector is None:
            raise FailureError(Unavailable(upstream=True))
        try:
            session = await self._connector.connection()
        except ConnectionFailed as exc:
            raise self._lost(operation, exc) from exc
        self._use(session)
        return session

    def _use(self, session: Session) -> None:
        if self._listed is not session:  # a server that was started again may offer something else
            self._listed = session
            self._changed.set()

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

    async def _keep_running(self, connector: RestartingConnector[Session]) -> None:
        """Have a session while any resource is watched. It subscribes by itself. The first call brings the credential, if any."""
        none: frozenset[str] = frozenset()
        while True:
            await self._watched.changed_from(none)
            try:
                session = None if self._credential and self._value is None else await connector.connection()
            except (ClientError, FailureError) as exc:
                reason = exc.loss.reason if isinstance(exc, ConnectionFailed) else type(exc).__name__
                log.warning("import.unavailable", import_=self._name, reason=reason)
                session = None
            if session is None:
                await anyio.sleep(WATCH_AGAIN_SECONDS)
                continue
            self._use(session)
            await session.wait_lost()

    async def _list_again(self, session: Session) -> None:
        try:
            with anyio.fail_after(LIST_SECONDS):
                found = await list_again(session, self._target)
        except (ClientError, FailureError, TimeoutError) as exc:
            log.warning("import.lists_unknown", import_=self._name, error=type(exc).__name__)
            return
        self.on_listed(found)


def _status_failure(exc: ClientError) -> Failure | None:
    """The failure that a server behind a URL has told by a status of HTTP, as of an imported OpenAPI document."""
    fault = exc.__cause__
    if not isinstance(fault, Exception) or getattr(fault, "reason", None) != "status":
        return None
    from ..http.model import UpstreamFault, failure_of  # late: processes need none

    return failure_of(fault, repeatable=True) if isinstance(fault, UpstreamFault) else None


def params_of(operation: McpOperation, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The params of the request, and what of them HTTP repeats in a header."""
    match operation.method:
        case "tools/call" | "prompts/get":
            return {"name": operation.target, "arguments": arguments}, operation.target
        case "resources/read":
            uri = expand(operation.target, arguments) if operation.target else arguments["uri"]
            return {"uri": uri}, uri
        case _:
            return arguments, ""


def mirrored_values(mirrored: Mapping[str, tuple[str, ...]], arguments: dict[str, Any]) -> dict[str, str]:
    """What HTTP repeats of these arguments, by header. `mirrored` are their paths."""
    found: dict[str, str] = {}
    for header, path in mirrored.items():
        value: Any = arguments
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, bool):
            found[header] = str(value).lower()
        elif isinstance(value, str | int):
            found[header] = str(value)
    return found


_encode: Final = msgspec.json.Encoder().encode
_NO_CONTENT: Final = Raw(b"[]")


class _ToolResult(Struct, rename="camel"):
    content: Raw = _NO_CONTENT
    structured_content: Raw = Raw(b"")
    is_error: bool | None = None
    result_type: str = "complete"


def read_result(operation: McpOperation, text: Raw) -> Raw:
    """The result of an operation. Raises `UpstreamError` for an error of a tool, and `InvalidReply`."""
    if operation.method == "tools/call":
        return _read_tool_result(operation, text)
    try:
        members = decoder_for(dict[str, Any])(text)
    except DECODE_ERRORS:
        raise InvalidReply("the result is no object") from None
    if members.pop("resultType", "complete") != "complete":
        raise InvalidReply(ASKS)
    for beside in ("_meta", "ttlMs", "cacheScope"):
        members.pop(beside, None)
    return Raw(_encode(members))


def _read_tool_result(operation: McpOperation, text: Raw) -> Raw:
    try:
        found = decoder_for(_ToolResult)(text)
    except DECODE_ERRORS:
        raise InvalidReply("the result is not as MCP has it") from None
    if found.result_type != "complete":
        raise InvalidReply(ASKS)
    structured = bytes(found.structured_content)
    if found.is_error:
        raise _declared_error(operation, structured) or UpstreamError(
            TOOL_ERROR.code, _whole(found.content, structured)
        )
    if not operation.structured:
        return _whole(found.content, structured)
    if not structured:
        raise InvalidReply("the tool declares structured content, but gave none")
    return _with_content(structured, found.content)


def _with_content(structured: bytes, content: Raw) -> Raw:
    """Join structured content with content that says more than a text of the same. Only an object has room for that."""
    try:
        blocks: list[Any] = decoder_for(list[Any])(content)
        members = decoder_for(dict[str, Raw])(structured)
        if _repeats(blocks, decoder_for(dict[str, Any])(structured)):
            return Raw(structured)
        meta = decoder_for(dict[str, Raw])(members.get("_meta", b"{}"))
    except DECODE_ERRORS:
        return Raw(structured)
    return Raw(_encode(members | {"_meta": meta | {CONTENT: content}}))


def _repeats(blocks: list[Any], structured: dict[str, Any]) -> bool:
    """Whether blocks are texts alone that say what is structured: all of it, or what is wrapped as `result`, or its items."""
    if not all(isinstance(each, dict) and each.keys() == {"type", "text"} for each in blocks):
        return False
    texts = [each["text"] for each in blocks]
    alone = structured["result"] if structured.keys() == {"result"} else structured
    if isinstance(alone, list) and len(alone) == len(texts) and all(map(_says, texts, alone)):
        return True
    return not texts or (len(texts) == 1 and (_says(texts[0], structured) or _says(texts[0], alone)))


def _says(text: object, value: object) -> bool:
    if text == value or not isinstance(text, str):
        return text == value
    try:
        return bool(msgspec.json.decode(text) == value)
    except DECODE_ERRORS:
        return False


class _ErrorFacts(Struct, forbid_unknown_fields=True):
    """How a tool of another discreet says what error it is."""

    code: str
    retryable: bool
    details: Raw = Raw(b"")


def _declared_error(operation: McpOperation, structured: bytes) -> UpstreamError | FailureError | None:
    """The error that a failed tool declares, or a limit or a deadline of the daemon that it runs in; None for any other."""
    try:
        facts = decoder_for(_ErrorFacts)(structured)
    except DECODE_ERRORS:
        return None
    details = Raw(bytes(facts.details)) if bytes(facts.details) not in (b"", b"null") else None
    for error in operation.errors:
        if error.code == facts.code and error.code not in OF_SERVERS:
            after = _retry_after_ms(details)
            return UpstreamError(facts.code, _without_wait(details, error.schema, after), retry_after_ms=after)
    if facts.retryable:
        return _transient(facts.code, details)
    match facts.code:
        case "INTERNAL":
            return FailureError(Internal(_code_in(details)))
        case "INVALID_INPUT":
            return _wrong_params(details)
        case _:
            return None


class _RetryAfter(Struct):
    retry_after_ms: Annotated[int, Meta(ge=0)] | None = msgspec.field(name="retryAfterMs", default=None)


def _retry_after_ms(details: Raw | None) -> int | None:
    try:
        return None if details is None else decoder_for(_RetryAfter)(details).retry_after_ms
    except DECODE_ERRORS:
        return None


def _without_wait(details: Raw | None, schema: Schema | None, after: int | None) -> Raw | None:
    """Details without the member for the time to wait, which the other daemon has added unless its schema has it."""
    if after is None or details is None or (isinstance(schema, dict) and _RETRY_AFTER in schema.get("properties", {})):
        return details
    members = decoder_for(dict[str, Raw])(details)
    del members[_RETRY_AFTER]
    return Raw(_encode(members))


_RETRY_AFTER: Final = "retryAfterMs"
_CODE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}")


class _Undeclared(Struct):
    code: str = ""


def _code_in(details: Raw | None) -> str | None:
    """The code of an error that the operation does not declare, such as `HTTP_404`."""
    try:
        code = "" if details is None else decoder_for(_Undeclared)(details).code
    except DECODE_ERRORS:
        return None
    return code if _CODE.fullmatch(code) else None


def _wrong_params(details: Raw | None) -> FailureError | None:
    """The fault of the arguments, which only the server has found."""
    try:
        told: InvalidParams = decoder_for(InvalidParams)(details or b"")
    except DECODE_ERRORS:
        return None
    param = told.param.removeprefix("arguments").removeprefix(".") or "$"
    param, expected, received = (cut(text, LONGEST_TEXT) for text in (param, told.expected, told.received))
    return FailureError(InvalidParams(param, expected, received, told.accepted))


LONGEST_TEXT: Final = 200
"""Characters of each fact of a wrong param."""


def _transient(code: object, details: Raw | None) -> FailureError | None:
    """The failure of a call that may succeed later."""
    after = _retry_after_ms(details)
    match code:
        case "OVERLOADED":
            return FailureError(Overloaded(after))
        case "UNAVAILABLE":
            return FailureError(Unavailable(after, upstream=True))
        case "TIMEOUT":
            return FailureError(TimedOut())
        case _:
            return None


ASKS: Final = "the server asks the user or the model before it answers, which an import can't"


def _whole(content: Raw, structured: bytes) -> Raw:
    beside = b',"structuredContent":' + structured if structured else b""
    return Raw(b'{"content":%b%b}' % (bytes(content), beside))


def server_error(exc: RemoteError) -> UpstreamError | FailureError:
    """Return the failure that the caller is told for an error of the server."""
    if isinstance(exc.data, dict) and exc.data.get("retryable") is True:
        transient = _transient(exc.data.get("code"), Raw(_encode(exc.data.get("details"))))
        if transient is not None:
            return transient
    if exc.number == INTERNAL_ERROR and (code := _code_in(Raw(_encode(exc.data)))) is not None:
        return FailureError(Internal(code))
    return UpstreamError(SERVER_ERROR.code, Raw(_encode(shown_error(exc))))
