"""Holds the conversation of one client in MCP over several HTTP requests: a session, or since 2026-07-28 one request after the
other. Keeps the table of sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, assert_never, cast, final
from weakref import proxy

import msgspec

from ...daemon.connection.notices import ClientContextBackend, ClientRequests, Notices
from ...daemon.connection.session import Session as ClientSession
from ...daemon.dispatch.dispatcher import Dispatcher, Router
from ...daemon.dispatch.responder import Responder
from ...daemon.dispatch.task_pool import out_of_task
from ...daemon.logs import RepeatedWarning, log
from ...daemon.operations.request import ClientInfo, Request
from ...daemon.rpc.envelope import NULL_ID, ClientResponse, Dropped, NoJson, Refused, encode_notification
from ...dialects.mcp.dialect import UPDATED, McpMessages
from ...dialects.mcp.seal import new_session_id
from ...errors.exceptions import FailureError
from ...errors.failures import Cancelled, Overloaded
from ...lazy import anyio
from ..calls import RETRY_AFTER_MS
from ..streams import Events, MessageStream

if TYPE_CHECKING:
    from ...daemon.dispatch.metrics import RequestMetrics
    from ...daemon.host import Host
    from ...daemon.operations.access import Access
    from ...daemon.operations.identity import Identity
    from ...daemon.operations.request import Backlog, Request
    from ...daemon.operations.spec import OperationSpec
    from ...daemon.rpc.envelope import Message
    from ...dialects.mcp.seal import Seal
    from ...dialects.mcp.session import McpSession
    from ...errors.failures import Failure

SESSION_BYTES: Final = 32 * 1024
"""Bytes that a conversation takes: the handlers of its methods (measured: 15 to 30 KiB)."""

MAX_KEPT_BYTES: Final = 1024 * 1024
"""Bytes of sent messages that a session keeps, for a client that was cut off. The oldest go first."""

SCARCE_KEPT_BYTES: Final = 64 * 1024
"""The limit while all sessions together take a quarter of the memory budget."""


class ServedSession(ClientSession, Protocol):
    """What a client of MCP speaks with: the host's own session, or that of another server."""

    @property
    def dialect(self) -> McpMessages: ...

    def bind(self, subject: str) -> None:
        """From now on it is lent to this caller."""
        ...


OpenSession: TypeAlias = "Callable[[Conversation], ServedSession]"

_update_dropped: Final = RepeatedWarning("notification.dropped")
_answer_unmatched: Final = RepeatedWarning("mcp.answer_unmatched")


@final
class Conversation:
    """The `ClientConnection` of the dialect and of the contexts of its requests.

    `listening` is what goes to the client beside the answers to its requests. With `keeps`, its messages and those of
    `streams` are kept, the numbers of all streams differ, and what is sent when a request is answered goes to `listening`.

    Its session does not refer to it, and after `close` nothing does: its memory is free after its last use, without the cyclic
    collector. `opened` makes the session. `on_exit()` is called when that can't go on.
    """

    def __init__(self, host: Host, opened: OpenSession, *, keeps: bool) -> None:
        self.host = host
        self.client = ClientInfo()
        self.inflight: Final[dict[bytes, Request]] = {}
        self.client_requests: Final = ClientRequests(lambda: None)
        self.streams: Final[dict[int, MessageStream]] = {}
        self.keeps: Final = keeps
        self.reusable = False
        """Whether nothing of its last request goes on, so that it may be lent to another one."""
        self._held = 0
        self._kept = 0
        self._next_stream = 0
        self.listening = self.open_stream()
        self.on_exit: Callable[[], None] = lambda: None
        self.session: Final = opened(proxy(self))
        self.router: Final = Router(self.session.registry(), host.registry, host.access, named=False)
        self._hold(SESSION_BYTES)
        if not keeps:
            self.listening.end()

    # -- as the connection, for the dialect ----------------------------------------------------------------------

    @property
    def context_backend(self) -> ClientContextBackend:
        return self.context(self.listening, self.host.access, "")

    def set_client_info(self, client: ClientInfo) -> None:
        """Raises `FailureError(Overloaded)` where there is no memory for what it says."""
        self._hold(len(msgspec.json.encode(client)) - len(msgspec.json.encode(self.client)))
        self.client = client

    def methods(self, identity: Identity | None) -> Iterator[OperationSpec]:
        return self.host.catalogue.visible_to(identity)

    def tell_updated(self, uri: str) -> None:
        for message in self.session.dialect.encode_updates(uri):
            self._post(UPDATED, message)

    def take_again(self, request: Request) -> None:
        raise NotImplementedError("MCP holds nothing back")

    def begin_shutdown(self) -> None:
        """MCP has no such method."""

    def exit(self, *, failed: bool = False) -> None:
        self.on_exit()

    def watch_client(self, pid: int) -> None:
        """It may be on another machine."""

    def tell(self, method: str, params: object) -> None:
        self._post(method, encode_notification(method, params))

    def _post(self, method: str, message: bytes) -> None:
        if self.listening.congested:  # a client that does not read holds up no other
            _update_dropped(method=method)
        else:
            self.listening.post(message)

    def _hold(self, size: int) -> None:
        if self.keeps and size > 0 and not self.host.memory.fits(size):
            raise FailureError(Overloaded())
        self._held += size
        self.host.memory.add("sessions", size)

    # -- streams -------------------------------------------------------------------------------------------------

    def open_stream(self) -> MessageStream:
        """For the messages of one request."""
        memory = self.host.memory
        if not self.keeps:
            return MessageStream(memory)
        number = self._next_stream
        self._next_stream += 1
        later = self.listening if number else None
        stream = MessageStream(memory, number, keep=lambda change: self._count(stream, change), later=later)
        self.streams[number] = stream
        return stream

    def _count(self, stream: MessageStream, change: int) -> None:
        self._kept += change
        if change > 0:
            self._trim(stream)

    def forget(self, stream: MessageStream) -> None:
        """Drop it: it will not be asked for again."""
        self.streams.pop(stream.number, None)
        stream.close()

    def _trim(self, newest: MessageStream) -> None:
        """Drop what is kept beyond the bound, of the oldest stream first, but not the message that has just come."""
        memory = self.host.memory
        limit = SCARCE_KEPT_BYTES if 4 * memory.held("sessions") >= memory.limit else MAX_KEPT_BYTES
        streams = iter([*self.streams.values()] if self._kept > limit else [])
        while self._kept > limit and (stream := next(streams, None)) is not None:
            while self._kept > limit and (stream is not newest or stream.oldest < stream.last):
                if not stream.drop_oldest():
                    break
            if stream.ended and not stream.bytes:
                self.forget(stream)

    # -- requests ------------------------------------------------------------------------------------------------

    def context(self, stream: MessageStream, access: Access, url: str) -> ClientContextBackend:
        """Return the backend for contexts of requests whose messages go into this stream."""
        notices = Notices(stream, self.host.scheduler.threads, self.host.memory)
        stream.on_room = notices.give_room
        return ClientContextBackend(self.host, self, notices, self.client_requests, access, url)

    def close(self) -> None:
        """The client is gone: cancel what runs for it, end its streams, and hold nothing for it."""
        for request in list(self.inflight.values()):
            request.end(Cancelled())
        self.client_requests.close()
        self.on_exit = lambda: None
        for stream in [*self.streams.values()]:
            self.forget(stream)
        self.listening.close()
        self.session.dialect.close()
        self.host.memory.add("sessions", -self._held)
        self._held = 0


@final
class PostHandler:
    """The messages of one POST, what answers them, and what is sent beside the answers, all in `stream`. The `Output` of its
    responder.

    `on_answered()` is called when all have their answers, or need none.
    """

    def __init__(
        self,
        conversation: Conversation,
        access: Access,
        backlog: Backlog,
        url: str,
        *,
        closed: bool,
        on_answered: Callable[[], None],
        metrics: RequestMetrics,
    ) -> None:
        self.stream: Final = conversation.open_stream()
        self.batch = False
        """Whether the messages came together, and are answered so."""
        self.expected = 0
        """How many answers there will be."""
        self.failure: Failure | None = None
        """That of the last answer which tells of one."""
        self._conversation = conversation
        self._access = access
        self._backlog = backlog
        self._url = url
        self._closed = closed
        self._answered = self._told = 0
        self._on_answered = on_answered
        self._metrics = metrics

    def take(self, messages: Sequence[Message], metadata: dict[str, str]) -> None:
        """Take these messages."""
        self.expected = sum(
            isinstance(message, Refused | NoJson) or (isinstance(message, Request) and message.id is not None)
            for message in messages
        )
        if not self.expected:
            self._end()
        conversation = self._conversation
        dialect, host = conversation.session.dialect, conversation.host
        # It holds this object: what runs holds it, and nothing else does.
        responder = Responder(self, host.memory, dialect, self._metrics, conversation.inflight)
        dispatcher = Dispatcher(
            conversation.router,
            responder,
            host.scheduler,
            self._backlog,
            conversation.context(self.stream, self._access, self._url),
            dialect,
            self._metrics,
            access=self._access,
            tracing=host.tracing,
        )
        if self._closed:
            dispatcher.close()
        try:
            for message in messages:
                self._take(message, metadata, responder, dispatcher)
        except BaseException:  # a fault of our own must not take up a place for ever
            self._end()
            raise
        finally:
            if self._metrics.inline:
                self._metrics.end_read()

    def _take(
        self,
        message: Message,
        metadata: dict[str, str],
        responder: Responder,
        dispatcher: Dispatcher,
    ) -> None:
        match message:
            case Request():
                message.metadata = metadata
                out_of_task(lambda: dispatcher.accept(message))  # an inline handler may begin now
            case Refused(call_id, failure):
                responder.refuse(call_id, failure)
            case NoJson(parse_failure):
                responder.refuse(NULL_ID, parse_failure)
            case ClientResponse():
                if not self._conversation.client_requests.take(message):
                    hint = "it came too late, or another daemon asked: a balancer must keep a session at one daemon"
                    _answer_unmatched(id=message.id, hint=hint)
            case Dropped():
                log.warning("message.malformed")
            case _:
                assert_never(message)

    @property
    def complete(self) -> bool:
        """Whether all answers are there, and nothing was sent beside them."""
        return self._answered == self.expected and self.stream.last == self._told

    # -- as the output of the responder --------------------------------------------------------------------------

    def post(self, *parts: bytes) -> None:
        self._answer(b"".join(parts))

    def fail(self, failure: Failure, body: bytes | None) -> None:
        self.failure = failure
        self._answer(body)

    def open_stream(self, encode: Callable[[int, bytes], bytes | None], service_params: Mapping[str, str]) -> Events:
        memory = self._conversation.host.memory
        return Events(self.stream, memory, lambda count, value, _: encode(count, value), self._answer)

    def _answer(self, body: bytes | None) -> None:
        if body is not None and not self.stream.ended:  # it ends before if it can't be read any more
            self._told += 1
            self.stream.post(body)
        self._answered += 1
        if self._answered == self.expected:
            self.stream.end()
            self._end()

    def _end(self) -> None:
        tell, self._on_answered = self._on_answered, lambda: None
        tell()


# Sessions by their ids, each found by the caller alone who began it, and conversations that are lent to requests without one.


MAX_DELETED: Final = 4096
"""Sessions that their clients have ended, and that are remembered, so that none of them begins again by its sealed id."""

MAX_SPARE: Final = 64
"""Conversations that wait to be lent again. One takes a third of a millisecond to be made."""


class Session(msgspec.Struct, eq=False):
    """`users` are the HTTP requests that are open; `since` is when the last one ended, in seconds of the clock. One that is
    `leaving` closes with the last of them.

    `token` is the id as long as that is not sealed, and stays the same when it is.
    """

    id: str
    token: str
    owner: str
    conversation: Conversation
    since: float
    users: int = 0
    leaving: bool = False


@final
class Sessions:
    """Each caller has at most `limit`. One without an open request ends after so many idle seconds.

    Where daemons share keys, the id of a session holds what is known of it, sealed, and any of them goes on with it.
    """

    def __init__(
        self,
        host: Host,
        opened: OpenSession,
        limit: int,
        idle_seconds: float,
        clock: Callable[[], float] = monotonic,
        *,
        seal: Seal | None = None,
    ) -> None:
        self._host = host
        self._opened = opened
        self._seal = seal
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._by_owner: dict[str, dict[str, Session]] = {}  # those whose last request ended first come first
        self._lent: dict[Conversation, None] = {}
        self._spare: list[Conversation] = []
        self._deleted: dict[str, None] = {}
        self._sweeping = False

    def begin(self, owner: str) -> Session | Overloaded:
        """A new session, which takes the place of an idle one with `settle`; refused where a caller has too many others."""
        own = self._by_owner.get(owner, {})
        idle = sum(not session.users for session in own.values())
        if len(own) - idle >= self._limit or not self._host.memory.fits(SESSION_BYTES):
            return Overloaded(RETRY_AFTER_MS)
        conversation = Conversation(self._host, self._opened, keeps=True)
        token = new_session_id()
        session = Session(token, token, owner, conversation, self._clock())
        conversation.on_exit = lambda: self.retire(session)
        self._by_owner.setdefault(owner, {})[session.id] = session
        if not self._sweeping:
            self._sweeping = True
            self._host.spawn(self._sweep_on)
        return session

    def settle(self, session: Session) -> None:
        """Its handshake is made: a caller who has too many sessions loses those that are idle for longest."""
        own = self._by_owner.get(session.owner, {})
        idle = [each for each in own.values() if not each.users and each is not session]
        for each in idle[: max(0, len(own) - self._limit)]:
            self.end(each)

    def find(self, session_id: str, owner: str) -> Session | Overloaded | None:
        """The session of this id, if it is this caller's and has not ended."""
        session = self._by_owner.get(owner, {}).get(session_id)
        if session is not None and self._has_expired(session):
            self.end(session)
            session = None
        return session if session is not None or self._seal is None else self._resume(self._seal, session_id, owner)

    def _resume(self, seal: Seal, session_id: str, owner: str) -> Session | Overloaded | None:
        """Go on with a session that another daemon with the same keys has begun, or that has ended here because it was idle."""
        sealed = seal.of(owner).open_session(session_id)
        if sealed is None or sealed.token in self._deleted:
            return None
        session = self.begin(owner)
        if isinstance(session, Session):
            try:
                _own(session).resume(sealed)
            except FailureError:
                self.end(session)
                return Overloaded(RETRY_AFTER_MS)
            self._rename(session, session_id, sealed.token)
            self.settle(session)
        return session

    def named(self, session: Session) -> str:
        """The id that a client is told of a session which it begins: sealed, where daemons share keys."""
        if self._seal is not None:
            sealed = _own(session).seal(session.token, self._seal.of(session.owner))
            self._rename(session, sealed or session.id, session.token)
        return session.id

    def _rename(self, session: Session, session_id: str, token: str) -> None:
        own = self._by_owner[session.owner]
        del own[session.id]
        session.id, session.token = session_id, token
        own[session_id] = session

    def delete(self, session: Session) -> None:
        """End a session as its client wishes: its id does not begin it again."""
        self.end(session)
        self._deleted[session.token] = None
        if len(self._deleted) > MAX_DELETED:
            del self._deleted[next(iter(self._deleted))]

    @contextmanager
    def using(self, session: Session) -> Iterator[None]:
        """An HTTP request of it is open during the block."""
        session.users += 1
        try:
            yield
        finally:
            session.users -= 1
            session.since = self._clock()
            own = self._by_owner.get(session.owner, {})
            if own.pop(session.id, None) is not None:
                own[session.id] = session  # behind the others
            elif session.leaving and not session.users:
                session.conversation.close()

    def end(self, session: Session) -> None:
        """Close it. Its id means nothing any more."""
        own = self._by_owner.get(session.owner, {})
        if own.pop(session.id, None) is not None:
            session.conversation.close()
        if not own:
            self._by_owner.pop(session.owner, None)

    def retire(self, session: Session) -> None:
        """End it behind the answers to its open requests. Its id means nothing any more."""
        session.conversation.listening.end()
        if not session.users:
            return self.end(session)
        own = self._by_owner.get(session.owner, {})
        session.leaving = own.pop(session.id, None) is not None
        if not own:
            self._by_owner.pop(session.owner, None)

    def sweep(self) -> None:
        """End those that are idle for too long."""
        for own in [*self._by_owner.values()]:
            for session in [session for session in own.values() if self._has_expired(session)]:
                log.debug("mcp.session_expired")
                self.end(session)

    def _has_expired(self, session: Session) -> bool:
        return not session.users and self._clock() - session.since >= self._idle_seconds

    async def _sweep_on(self) -> None:
        while True:
            await anyio.sleep(min(self._idle_seconds, SWEEP_SECONDS))
            self.sweep()

    @property
    def may_lend(self) -> bool:
        """Whether there is a conversation for one more request without a session, or memory for one."""
        return bool(self._spare) or self._host.memory.fits(SESSION_BYTES)

    @contextmanager
    def lent(self, subject: str) -> Iterator[Conversation]:
        """A conversation for one request without a session, of this caller."""
        conversation = self._spare.pop() if self._spare else Conversation(self._host, self._opened, keeps=False)
        conversation.session.bind(subject)
        conversation.reusable = False
        self._lent[conversation] = None
        try:
            yield conversation
        finally:
            del self._lent[conversation]
            if conversation.reusable and len(self._spare) < MAX_SPARE:
                self._spare.append(conversation)
            else:
                conversation.close()

    @property
    def _conversations(self) -> list[Conversation]:
        sessions = [session.conversation for own in self._by_owner.values() for session in own.values()]
        return [*sessions, *self._lent]

    def tell_updated(self, uri: str) -> None:
        """Tell the clients that asked for it that a resource has changed. On the loop."""
        for conversation in self._conversations:
            conversation.tell_updated(uri)

    def subscriptions(self) -> Iterable[str]:
        """Return the URIs of the resources of whose changes these clients want to hear."""
        return (uri for each in self._conversations for uri in each.session.dialect.subscriptions())

    def drain(self) -> None:
        """The daemon is about to end: what only waits ends now."""
        for conversation in self._conversations:
            conversation.session.dialect.drain()
            if conversation.keeps:
                conversation.listening.end()


def _own(session: Session) -> McpSession:
    return cast("McpSession", session.conversation.session)  # only sessions of the host's own are sealed


SWEEP_SECONDS: Final = 60.0
"""How often idle sessions are looked for, at least."""
