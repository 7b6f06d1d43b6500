"""`/mcp`: the Streamable HTTP of MCP. Revisions up to 2025-11-25 have sessions; since 2026-07-28 each request stands alone.

Sections are those of basic/transports (2025-11-25) and basic/transports/streamable-http (2026-07-28).
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final, cast, final

from ...daemon.connection.session import plugin_of, with_place
from ...daemon.dispatch.responder import note_failure
from ...daemon.logs import log
from ...daemon.operations.access import Access
from ...daemon.operations.request import Request, ResourceWatcher
from ...daemon.operations.service import DeclarationError
from ...daemon.rpc.envelope import NULL_ID, ClientResponse, Message, NoJson, Refused, decode, split_batch
from ...dialects.mcp.dialect import McpDialect
from ...dialects.mcp.generated.tables import LEGACY_REVISIONS, MODERN_METHODS, MODERN_REVISION
from ...dialects.mcp.revision import MISSING_META, NEWEST_LEGACY, TASK_METHODS, Meta, is_own, meta_of, refusal
from ...dialects.mcp.session import McpSession
from ...dialects.mcp.state import Offered
from ...errors.failures import (
    AuthenticationRequired,
    Cancelled,
    DomainFailure,
    InsufficientPermissions,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    Overloaded,
    ParseFailure,
    Unavailable,
)
from ..answers import JSON, Answer, headers_of, plain_text, status_of
from ..calls import RETRY_AFTER_MS, UNWATCHED_SECONDS, watched
from ..requests import GatewayRequest, note_route
from ..streams import FIRST_SECONDS, QueuedMessage, encode_event, send_stream
from .conversation import Conversation, PostHandler, Session, Sessions
from .headers import LAST_EVENT, SESSION, VERSION, accepts, mismatch

if TYPE_CHECKING:
    from ...daemon.dispatch.metrics import RequestMetrics
    from ...daemon.host import Host
    from ...daemon.operations.request import Request
    from ...dialects.mcp.tools import Tool
    from ...errors.failures import Failure
    from ..asgi import Send
    from ..calls import CallRunner, Sender
    from ..streams import MessageStream
    from .conversation import OpenSession, ServedSession


# How requests of MCP are answered: statuses and headers of failures.


RETRY_MS: Final = 1000
"""The time that a client is told to wait before it asks again for a stream that was cut off."""

_ALWAYS: Final = (
    AuthenticationRequired, InsufficientPermissions, InvalidRequest, Overloaded, ParseFailure, Unavailable
)  # fmt: skip


def status_of_outcome(failure: Failure, *, modern: bool) -> int:
    """The status of the response that carries a JSON-RPC error: 200, but where HTTP's own clients must act on it, or the
    revision 2026-07-28 says otherwise.
    """
    if isinstance(failure, _ALWAYS) or (modern and isinstance(failure, MethodNotFound | InvalidParams)):
        return status_of(failure)
    return failure.http_status if modern and isinstance(failure, DomainFailure) and is_own(failure) else 200


PATH: Final = "mcp"

SSE: Final = "text/event-stream"
PRIMED_SINCE: Final = "2025-11-25"
"""Clients of earlier revisions take an event without data for a broken message."""

_REVISIONS: Final = tuple(each for each in LEGACY_REVISIONS if each != "2024-11-05")
"""The revisions with this transport. Some clients speak the one before them over it all the same."""

_BATCH: Final = Refused(NULL_ID, InvalidRequest("batch-not-supported"))
_EVENT_ID: Final = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)


class EarlyAnswer(Exception):
    """An answer that ends the handling of a request early."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer: Final = answer


@final
class McpEndpoint:
    """Raises `DeclarationError` for operations that MCP can't offer."""

    def __init__(self, host: Host, calls: CallRunner) -> None:
        settings = host.settings
        try:
            self.offered: Final = Offered(host)
        except DeclarationError as exc:
            raise with_place(exc, host.catalogue.operations) from exc
        self.calls: Final = calls
        self.forwards: Final = host.bridge is not None
        """Whether all messages are another server's, which says itself what it takes."""
        self.metrics: Final = host.request_metrics["http"]
        self.sessions: Final = Sessions(
            host,
            self._opening(host),
            settings.http_max_sessions,
            settings.http_session_timeout,
            seal=self.offered.seal if self.offered.shares_keys and host.bridge is None else None,
        )
        self.dialect: Final = McpDialect(lambda method, meta: None, host.memory)
        """For what is no session's."""
        calls.on_close.append(self.sessions.drain)
        call_on_loop = host.scheduler.threads.call_on_loop
        host.resource_watchers.append(
            ResourceWatcher(lambda uri: call_on_loop(self.sessions.tell_updated, uri), self.sessions.subscriptions)
        )

    def _opening(self, host: Host) -> OpenSession:
        if host.bridge is None:
            return lambda conversation: McpSession(conversation, offered=self.offered)
        bridge = plugin_of(host, "mcp")
        return lambda conversation: cast("ServedSession", bridge.open_session(conversation, conversation, b""))

    async def respond(self, request: GatewayRequest, path: str, send: Send) -> Answer | None:
        url = self.calls.url(request).rstrip("/") + "/"
        if path != PATH:
            return plain_text(404, f"the endpoint is /{PATH}")
        note_route(request, f"/{PATH}")
        allowed = ("POST",) if request.headers.get(VERSION) == MODERN_REVISION else ("GET", "POST", "DELETE")
        if request.method not in allowed:
            return Answer(405, media_type="", headers={"allow": ", ".join(allowed)})
        needed = {"POST": (JSON, SSE), "GET": (SSE,)}.get(request.method, ())
        if not accepts(request, *needed):
            return plain_text(406, f"Accept must list {' and '.join(needed)}")
        exchange = McpExchange(self, request, send, url)
        try:
            await exchange.identify()
            match request.method:
                case "POST":
                    return await exchange.post()
                case "GET":
                    return await exchange.get()
                case _:
                    return exchange.delete()
        except EarlyAnswer as early:
            return early.answer


@final
class McpExchange:
    """One HTTP request and its answer. Writes itself why it is refused."""

    _access: Access
    _owner: str
    """Whose sessions it finds."""

    def __init__(self, endpoint: McpEndpoint, request: GatewayRequest, send: Send, url: str) -> None:
        self._endpoint = endpoint
        self._calls = endpoint.calls
        self._sessions = endpoint.sessions
        self._request = request
        self._send = send
        self._url = url
        self._metadata = self._calls.service_params(request)
        self._call_id = NULL_ID

    async def identify(self) -> None:
        """Identify the caller. If there is an identity provider, every request needs credentials."""
        access = await self._calls.known_access(self._request, PATH)
        if not isinstance(access, Access):
            raise self._refused(access)
        known = access.caller if access.provider is not None else None
        self._access, self._owner = access, "" if known is None else known.subject

    def failure(self, failure: Failure) -> Answer:
        """For what never became a call."""
        body = self._endpoint.dialect.encode_failure(self._call_id, failure)
        return Answer(status_of(failure), body, headers=headers_of(failure))

    def _refused(self, failure: Failure, call_id: bytes | None = None) -> EarlyAnswer:
        return EarlyAnswer(self._calls.refused(self._request, self, failure, call_id))

    def _session(self) -> Session:
        """The session that the request belongs to (section Session Management)."""
        session_id = self._request.headers.get(SESSION)
        if session_id is None:
            raise EarlyAnswer(plain_text(400, f"{SESSION} is missing; a session begins with initialize"))
        session = self._sessions.find(session_id, self._owner)
        if isinstance(session, Overloaded):
            raise self._refused(session)
        if session is None:
            raise EarlyAnswer(plain_text(404, "there is no such session; begin a new one"))
        self._check_version(session.conversation.session.dialect.revision)
        return session

    def _check_version(self, agreed: str | None = None) -> None:
        """Section Protocol Version Header. `agreed` is the revision that the session's client has asked for itself."""
        if self._request.headers.get(VERSION, NEWEST_LEGACY) not in (*_REVISIONS, agreed):
            known = ", ".join((*_REVISIONS, MODERN_REVISION))
            raise EarlyAnswer(plain_text(400, f"{VERSION} must be one of {known}"))

    def delete(self) -> Answer:
        self._sessions.delete(self._session())
        return Answer(204, media_type="")

    # -- messages from the client ----------------------------------------------------------------------------------

    async def post(self) -> Answer | None:
        body = await self._calls.body(self._request, self)
        if not isinstance(body, bytes):
            return body
        message = decode(body)
        if isinstance(message, NoJson):
            message = self._endpoint.dialect.read_again(body) or message
        meta = None
        if isinstance(message, Request):
            meta = meta_of(message.params)
            self._call_id = message.id or NULL_ID
        version = meta.protocol_version if isinstance(meta, Meta) else None
        if version is not None or self._request.headers.get(VERSION) == MODERN_REVISION:
            return await self._post_alone(message, meta if isinstance(meta, Meta) else None)
        is_first = isinstance(message, Request) and message.method == "initialize" and message.id is not None
        begins = is_first and SESSION not in self._request.headers
        session = self._begun() if begins else self._session()
        with self._calls.open(), self._sessions.using(session):
            failed = True
            try:
                posting = self._take(session.conversation, message, body)
                answer = await self._answer(session.conversation, posting, session if begins else None)
                failed = posting.failure is not None
                return answer
            finally:
                if begins:
                    (self._sessions.end if failed else self._sessions.settle)(session)

    def _begun(self) -> Session:
        self._check_version()
        session = self._sessions.begin(self._owner)
        if isinstance(session, Overloaded):
            raise self._refused(session)
        return session

    async def _post_alone(self, message: Message, meta: Meta | None) -> Answer | None:
        """A request of 2026-07-28. Its client cancels it by going away. What is refused costs no conversation."""
        if not isinstance(message, Request):
            raise self._no_call(message)
        if message.id is None and (meta is None or meta.protocol_version is None or not self._endpoint.forwards):
            return Answer(
                202, media_type=""
            )  # a notification of no revision means nothing; nor does any, but to another server
        why = None if message.id is None else self._refusal(message, meta)
        if why is not None:
            return self._not_taken(message, why)
        if not self._sessions.may_lend:
            raise self._refused(Overloaded(RETRY_AFTER_MS))
        sender = self._sender()
        with self._calls.open(), self._sessions.lent(self._owner) as conversation:
            posting = self._posting(conversation, sender)
            conversation.listening = posting.stream
            posting.take([message], self._metadata)
            running = next(iter(conversation.inflight.values()), None)
            try:
                return await self._answer(conversation, posting)
            finally:
                if running is not None and not running.answered:
                    running.end(Cancelled())
                conversation.forget(posting.stream)
                conversation.reusable = running is None or running.ended_by is None

    def _refusal(self, call: Request, meta: Meta | None) -> Failure | None:
        """Why a request without a session is not taken, by its headers and `_meta`."""
        if meta is None or meta.protocol_version is None:
            return MISSING_META
        if call.id == NULL_ID:
            return InvalidRequest("invalid-id-type")
        differs = mismatch(self._request, call, meta.protocol_version, self._tool)
        return differs if differs is not None or self._endpoint.forwards else refusal(call.method, meta, NEWEST_LEGACY)

    def _not_taken(self, call: Request, failure: Failure) -> Answer:
        """The answer to a request that is refused for what it says of itself."""
        dialect = self._endpoint.dialect
        is_known = call.method in MODERN_METHODS or call.method in TASK_METHODS
        self._metrics().refused(call.method if is_known else None, failure)
        note_failure(call.method, call.id, failure, failure, dialect)
        body = dialect.encode_failure(self._call_id, failure)
        return Answer(status_of_outcome(failure, modern=True), body, headers=headers_of(failure))

    def _tool(self, name: str) -> Tool | None:
        """The tool of this name, if the caller may call it: else its method says so, and nothing else tells of it."""
        tool = self._endpoint.offered.tools.get(name)
        return None if tool is None or self._access.refusal(tool.spec.access, {}) is not None else tool

    def _take(self, conversation: Conversation, message: Message, body: bytes) -> PostHandler:
        """Take the messages of a session. What runs then goes on when its client goes away."""
        batch = conversation.session.dialect.batches and message == _BATCH
        messages = split_batch(body) if batch else [message]
        if len(messages) == 1 and not isinstance(messages[0], Request | ClientResponse):
            raise self._no_call(messages[0])
        posting = self._posting(conversation, self._sender())
        posting.batch = batch
        posting.take(messages, self._metadata)
        return posting

    def _no_call(self, message: Message) -> EarlyAnswer:
        match message:
            case Refused(call_id, failure):
                self._call_id = call_id
                return self._refused(failure, call_id)
            case NoJson(failure):
                return self._refused(failure)
            case _:
                return self._refused(InvalidRequest("malformed-envelope"))

    def _metrics(self) -> RequestMetrics:
        """The metrics of what is answered, which note it among the last requests where these are kept."""
        metrics: RequestMetrics = self._endpoint.metrics
        if self._calls.recent is not None:
            metrics = metrics.noted(partial(self._calls.note, self._request, self._access))
        return metrics

    def _posting(self, conversation: Conversation, sender: Sender) -> PostHandler:
        """Return the handler of one POST, which counts for its sender. It answers all, even if the client has gone."""
        return PostHandler(
            conversation,
            self._access,
            sender.backlog,
            self._url,
            closed=self._calls.is_closed_to(self._request),
            on_answered=partial(self._calls.leave, sender),
            metrics=self._metrics(),
        )

    def _sender(self) -> Sender:
        """Whose limits count. Refuses what is beyond them."""
        sender = self._calls.enter(self._request, self._access)
        if sender is not None and sender.backlog.full:
            self._calls.leave(sender)
            sender = None
        if sender is None:
            raise self._refused(Overloaded(RETRY_AFTER_MS))
        return sender

    # -- messages to the client ------------------------------------------------------------------------------------

    async def _answer(
        self, conversation: Conversation, posting: PostHandler, begun: Session | None = None
    ) -> Answer | None:
        """One JSON text where nothing is sent before it and it comes soon, else a stream of events. `begun` is a session that the
        request begins, if it does not fail.
        """
        stream = posting.stream
        if not posting.expected:
            conversation.forget(stream)
            return Answer(202, media_type="")
        await stream.begun(UNWATCHED_SECONDS)
        streaming = False
        if not posting.complete:
            async with watched(self._request):
                await stream.begun(min(FIRST_SECONDS, self._calls.keep_alive))
                streaming = not posting.complete
                if streaming:
                    await self._send_stream(conversation, stream, headers=self._headers_of_begun(begun))
        if streaming:
            return None
        complete, texts = posting.complete, stream.text()
        conversation.forget(stream)
        if not complete:  # the client has gone, and knows no event behind which it could begin again
            return None
        if not texts:  # it was cancelled
            return Answer(200, media_type=f"{SSE}; charset=utf-8")
        if posting.batch:
            return Answer(200, b"[%b]" % b",".join(texts))
        failure = posting.failure
        if failure is None:
            return Answer(200, texts[0], headers=self._headers_of_begun(begun))
        status = status_of_outcome(failure, modern=not conversation.keeps)
        return Answer(status, texts[0], headers=headers_of(failure))

    def _headers_of_begun(self, session: Session | None) -> dict[str, str]:
        return {} if session is None else {SESSION: self._sessions.named(session)}

    async def get(self) -> Answer | None:
        """A stream of what belongs to no request, or the rest of one that was cut off (section Resumability and Redelivery)."""
        session = self._session()
        if self._calls.closed:
            raise self._refused(Unavailable())
        conversation = session.conversation
        stream, behind = conversation.listening, None
        if (last := self._request.headers.get(LAST_EVENT)) is not None:
            found = _EVENT_ID.fullmatch(last)
            cut = conversation.streams.get(int(found[1])) if found else None
            if found is None or cut is None:
                return plain_text(400, f"{LAST_EVENT} names no event that is kept")
            stream, behind = cut, int(found[2])
            if stream.ended and behind >= stream.last:
                return Answer(204, media_type="")
            if behind + 1 < stream.oldest:
                log.info("mcp.messages_lost", count=stream.oldest - behind - 1)
        sender = self._sender()
        try:
            with self._sessions.using(session):
                async with watched(self._request):
                    await self._send_stream(conversation, stream, behind=behind)
        finally:
            self._calls.leave(sender)
        return None

    async def _send_stream(
        self,
        conversation: Conversation,
        stream: MessageStream,
        *,
        headers: dict[str, str] | None = None,
        behind: int | None = None,
    ) -> None:
        """With a session each message has an id, behind which a client may begin again; newer ones get such an id first."""

        def encode(message: QueuedMessage) -> bytes:
            return encode_event(message.text, f"{stream.number}-{message.number}" if conversation.keeps else None)

        def first() -> bytes:
            if not conversation.keeps or conversation.session.dialect.revision < PRIMED_SINCE:
                return b""
            return b"retry: %d\n%b" % (RETRY_MS, encode_event(b"", f"{stream.number}-{stream.taken_up_to}"))

        await send_stream(
            self._send,
            stream,
            keep_alive=self._calls.keep_alive,
            headers=[(name.encode(), value.encode()) for name, value in (headers or {}).items()],
            first=first,
            behind=behind,
            encode=encode,
        )
