"""Which conversations there are: sessions by their ids, each found by the caller alone who began it, and those that are lent to
requests without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final, final

from ...daemon.logs import log
from ...errors.failures import Overloaded
from ...lazy import anyio
from ..exchange import RETRY_AFTER_MS
from .conversation import SESSION_BYTES, Conversation

if TYPE_CHECKING:
    from ...daemon.host import Host
    from ...dialects.mcp.state import Offered

ID_BYTES: Final = 32
"""Random ones of a session's id: nobody guesses it."""

MAX_SPARE: Final = 64
"""Conversations that wait to be lent again. One takes a third of a millisecond to be made."""


@final
class Session:
    """`users` are the HTTP requests that are open; `since` is when the last one ended, in seconds of the clock."""

    def __init__(self, session_id: str, owner: str, conversation: Conversation, since: float) -> None:
        self.id: Final = session_id
        self.owner: Final = owner
        self.conversation: Final = conversation
        self.users = 0
        self.since = since


@final
class Sessions:
    """Each caller has at most `limit`. One without an open request ends after so many idle seconds."""

    def __init__(
        self, host: Host, offered: Offered, limit: int, idle_seconds: float, clock: Callable[[], float] = monotonic
    ) -> None:
        self._host = host
        self._offered = offered
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._by_owner: dict[str, dict[str, Session]] = {}  # those whose last request ended first come first
        self._lent: dict[Conversation, None] = {}
        self._spare: list[Conversation] = []
        self._sweeping = False

    def begin(self, owner: str) -> Session | Overloaded:
        """A new session. A caller who has too many loses the one that is idle for longest; where none is, it is refused."""
        own = self._by_owner.setdefault(owner, {})
        if len(own) >= self._limit:
            idle = next((session for session in own.values() if not session.users), None)
            if idle is not None:
                self.end(idle)
                own = self._by_owner.setdefault(owner, {})
        if len(own) >= self._limit or not self._host.memory.fits(SESSION_BYTES):
            return Overloaded(RETRY_AFTER_MS)
        import secrets  # late: not every daemon has sessions

        conversation = Conversation(self._host, self._offered, keeps=True)
        session = Session(secrets.token_urlsafe(ID_BYTES), owner, conversation, self._clock())
        own[session.id] = session
        if not self._sweeping:
            self._sweeping = True
            self._host.spawn(self._sweep_on)
        return session

    def find(self, session_id: str, owner: str) -> Session | None:
        """The session of this id, if it is this caller's and has not ended."""
        session = self._by_owner.get(owner, {}).get(session_id)
        if session is not None and self._has_expired(session):
            self.end(session)
            return None
        return session

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

    def end(self, session: Session) -> None:
        """Close it. Its id means nothing any more."""
        own = self._by_owner.get(session.owner, {})
        if own.pop(session.id, None) is not None:
            session.conversation.close()
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

    @contextmanager
    def lent(self, subject: str) -> Iterator[Conversation]:
        """A conversation for one request without a session, of this caller."""
        conversation = self._spare.pop() if self._spare else Conversation(self._host, self._offered, keeps=False)
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
        """Tell whoever wants to hear of it that a resource has changed. On the loop."""
        for conversation in self._conversations:
            conversation.tell_updated(uri)

    def drain(self) -> None:
        """The daemon is about to end: what only waits ends now."""
        for conversation in self._conversations:
            conversation.session.dialect.drain()
            if conversation.keeps:
                conversation.listening.end()


SWEEP_SECONDS: Final = 60.0
"""How often idle sessions are looked for, at least."""
