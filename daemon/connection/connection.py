"""Serves one client on a byte transport: reading, writing, and the answers that are still owed to it.

Knows nothing of the process (descriptors, signals, log sinks), and nothing of other clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Protocol, final

from ...framing.channel import Channel
from ...framing.events import FrameLimits
from ...framing.parser import parser_for
from ...lazy import anyio
from ..dispatch.dispatcher import Dispatcher, Router
from ..dispatch.responder import Responder
from ..logs import log
from ..operations.request import Backlog, ClientInfo, Request, ResourceWatcher
from ..process.reexec import NEW_CONNECTION, ConnectionState
from .notices import ClientContextBackend, ClientRequests, Notices, Together
from .reader import Reader
from .session import DaemonControl, Session, check_declarations, dialect_of, open_session
from .writer import Writer

if TYPE_CHECKING:
    from ...framing.transports.interface import ByteTransport
    from ..host import Host
    from ..operations.identity import Identity
    from ..operations.request import Request, Sending
    from ..operations.spec import OperationSpec


class Owner(DaemonControl, Protocol):
    """Runs the connection, and receives its events."""

    def on_output_lost(self, cause: BaseException | None) -> None:
        """Nothing can be sent any more. Called once."""
        ...

    def on_progress(self) -> None:
        """Something was read, started, ended or sent."""
        ...


@final
class Connection:
    """Serves `host` to the client behind `transport`. `state` is what an earlier connection over the same transport left.

    `begin()` answers what has arrived already as far as that needs no event loop. `read()` and `writer.run()` do the
    rest, in tasks of the owner.
    """

    def __init__(
        self, host: Host, transport: ByteTransport, owner: Owner, state: ConnectionState = NEW_CONNECTION
    ) -> None:
        settings = host.settings
        self.host = host
        self._owner = owner
        self._metrics = host.request_metrics["stdio"]
        self._channel = Channel(
            transport,
            parser_for(
                state.framing or settings.framing_in(host.dialect),
                FrameLimits(settings.max_message_bytes, settings.max_header_bytes),
            ),
            frame_timeout=settings.frame_timeout,
            on_timeout=lambda size: log.warning("frame.timed_out", size=size),
            received=state.received,
            waiting=state.unsent,
        )
        self.writer = Writer(
            self._channel,
            host.memory,
            on_lost=owner.on_output_lost,
            on_room=self._on_room,
            on_sent=self.on_progress,
        )
        self._client_requests = ClientRequests(self.on_progress, state.asked)
        self._notices = Notices(self.writer, host.scheduler.threads, host.memory)
        self._backlog: Backlog = Backlog(self.writer)
        self._speaks: str | None = state.dialect or (None if host.dialect == "auto" else host.dialect)
        if self._speaks is None:
            check_declarations(host)
        self.client = ClientInfo()
        self.session = open_session(self._speaks or "plain", self, owner, state.session)
        self.context_backend = ClientContextBackend(host, self, self._notices, self._client_requests)
        host.resource_watchers.append(ResourceWatcher(self.tell_updated, self._subscriptions))
        self._reader = Reader(
            self._channel, self.writer, host.scheduler, self._backlog, self._client_requests, self._metrics
        )
        dispatcher = self._speak(self.session)
        if self._speaks is None:
            self._reader.read_as(self._learn, self._responder, self.session.dialect)
        host.scheduler.on_flush.append(self.writer.flush)
        for call in self.session.dialect.open_calls():
            dispatcher.accept(call)

    def _subscriptions(self) -> Iterable[str]:
        return self.session.dialect.subscriptions()

    def _speak(self, session: Session) -> Dispatcher:
        """From now on the client speaks this. Only while nothing is owed to it."""
        self._builtins = session.registry()
        self._responder = Responder(self.writer, self.host.memory, session.dialect, self._metrics)
        self._dispatcher = Dispatcher(
            Router(self._builtins, self.host.registry, self.host.access, named=session.dialect.named),
            self._responder,
            self.host.scheduler,
            self._backlog,
            self.context_backend,
            session.dialect,
            self._metrics,
            tracing=self.host.tracing,
        )
        self._reader.read_as(self._dispatcher.accept, self._responder, session.dialect)
        return self._dispatcher

    def _learn(self, first: Request) -> None:
        """The first call tells what the client speaks."""
        name = dialect_of(first)
        session = open_session(name, self, self._owner)
        dispatcher = self._speak(session)
        self._speaks, self.session = name, session
        dispatcher.accept(first)

    # -- reading -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Answer what can be answered before any event loop is loaded."""
        self._reader.begin()

    async def read(self) -> None:
        """Read until the end of input. Cancelling it loses nothing that was received."""
        await self._reader.run()
        if self.session.dialect.gives_up_requests:
            self._client_requests.close()

    def read_rest(self) -> None:
        """Take everything that was received, however much waits: it is answered although no more is read."""
        self._reader.read_all()
        self.writer.flush()

    @property
    def input_ended(self) -> bool:
        """True when the end of input was read."""
        return self._reader.ended

    # -- what is owed ------------------------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """True when every request that was read is answered and the client has all of it."""
        return not self._backlog.open and not self.writer.unsent

    @property
    def owed(self) -> bool:
        """True while the client waits for an answer, or for the rest of one. May be read in a signal handler."""
        return not self._channel.broken and bool(self._responder.waiting or self.writer.unsent)

    @property
    def unanswered(self) -> int:
        """How many requests still wait for their answer."""
        return len(self._responder.waiting)

    @property
    def pulse(self) -> int:
        """Changes whenever bytes come in or go out. May be read by any thread."""
        return self._channel.activity

    def counts(self) -> dict[str, int]:
        """How much each table holds of requests that have not ended. All are 0 when nothing is owed to the client."""
        return {
            "unanswered": len(self._responder.waiting),
            "open": self._backlog.open,
            "waiting": len(self._backlog),
            "waiting_bytes": self._backlog.bytes,
            "client_requests": len(self._client_requests),
            **self.writer.counts(),
        }

    def refuse_more(self) -> None:
        """From now on whatever is read is answered with UNAVAILABLE. What was accepted goes on."""
        self._dispatcher.close()
        self.session.dialect.drain()

    def hand_over(self) -> None:
        """Another program is about to go on from here: what only waits need not be waited for."""
        self.session.dialect.hand_over()

    async def send_last(self, seconds: float) -> bool:
        """Send what is left, for at most so long, once `writer.run` was cancelled; False when the client did not take it."""
        with anyio.move_on_after(seconds):
            await self.writer.wait_sent()
        if self.writer.unsent:
            log.error("replies.lost", bytes=self._channel.unsent)
            return False
        return True

    # -- handing the transport on ------------------------------------------------------------------------------

    @property
    def can_hand_over(self) -> bool:
        """False while something is wrong with the input, which has to be worked off before."""
        return self._channel.leftover() is not None

    def state(self) -> ConnectionState:
        """Return the state for the next connection over the same transport. Nothing is sent here afterwards."""
        return ConnectionState(
            received=self._channel.leftover() or b"",
            unsent=self.writer.take_rest(),
            framing=self._channel.framing,
            asked=self._client_requests.last,
            dialect=self._speaks,
            session=self.session.save(),
        )

    # -- what the scheduler and the session ask for -----------------------------------------------------------

    def on_progress(self) -> None:
        self._reader.look_again()
        self._owner.on_progress()

    def _on_room(self) -> None:
        self._notices.give_room()
        self.host.scheduler.pump()

    def methods(self, identity: Identity | None) -> Iterator[OperationSpec]:
        """Everything that this caller may call on this connection."""
        registry = self.host.registry
        own = (spec for spec in self._builtins if spec.name not in registry.names)
        return (spec for spec in chain(own, registry) if spec.visibility == "external" and spec.access.allows(identity))

    def set_client_info(self, client: ClientInfo) -> None:
        self.client = client

    def take_again(self, request: Request) -> None:
        self._reader.take_again(request)

    def tell(self, method: str, params: object) -> None:
        self.context_backend.notify(method, params)

    def tell_updated(self, uri: str) -> Sending | None:
        dialect = self.session.dialect
        sent = [self._notices.send(dialect.update_method, message) for message in dialect.encode_updates(uri)]
        return Together(sent) if sent else None
