"""The sessions of one connection: what the client has opened, and which prompt runs. Bounded; knows no task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol, final

import msgspec

from ....errors.type_building import decoder_for
from ...agents.acp_options import AcpOptions
from .errors import SessionNotFound, TooManySessions

if TYPE_CHECKING:
    from .generated.methods_of_agents import McpServer

MAX_SESSIONS: Final = 1024
"""Sessions that one client may have open."""

MAX_BYTES: Final = 16 * 1024 * 1024
"""What the sessions of one client may take together: their directories and MCP servers, as JSON."""


class SessionRecord(msgspec.Struct):
    """A session as it is handed on at a live reload. `task_id` is the task with which the next prompt goes on."""

    id: str
    cwd: str
    directories: tuple[str, ...]
    mcp_servers: tuple[dict[str, Any], ...]  # Any: JSON
    mode: str | None
    config: dict[str, str | bool]
    task_id: str | None = None


class RunningTurn(Protocol):
    """The prompt that runs in a session."""

    def cancel(self) -> None: ...


@final
class OpenSession:
    """One open session."""

    __slots__ = ("_cancelled_prompt", "_last_prompt", "record", "size", "turn")

    def __init__(self, record: SessionRecord) -> None:
        self.record: Final = record
        self.size: Final = len(msgspec.json.encode(record))
        self.turn: RunningTurn | None = None
        self._last_prompt: bytes | None = None
        self._cancelled_prompt: bytes | None = None

    def note_prompt(self, call_id: bytes) -> None:
        """A prompt was read. It begins later."""
        self._last_prompt = call_id
        if self._cancelled_prompt == call_id:  # the id of a prompt that is over
            self._cancelled_prompt = None

    def cancel(self) -> None:
        """Cancel what was read before: the prompt that runs, or the one that has not begun."""
        if self.turn is not None:
            self.turn.cancel()
        else:
            self._cancelled_prompt = self._last_prompt

    def was_cancelled(self, call_id: str | None) -> bool:
        """Whether this prompt was cancelled before it began."""
        return call_id is not None and self._cancelled_prompt == call_id.encode()


@final
class Sessions:
    """Raises `SessionNotFound` for an id that is not open."""

    def __init__(self, options: AcpOptions, saved: bytes = b"") -> None:
        self._options = options
        self._open: dict[str, OpenSession] = {}
        self._bytes = 0
        for record in decoder_for(list[SessionRecord])(saved) if saved else ():
            self._add(record)

    def open(
        self, session_id: str, cwd: str, directories: list[str] | None, servers: list[McpServer] | None
    ) -> OpenSession:
        """Open a session, or open it anew. Raises `TooManySessions`."""
        record = SessionRecord(
            session_id,
            cwd,
            tuple(directories or ()),
            tuple(msgspec.to_builtins(server) for server in servers or ()),
            self._options.modes[0].id if self._options.modes else None,
            {option.id: option.initial for option in self._options.config_options},
        )
        if session_id in self._open:
            self.close(session_id)
        return self._add(record)

    def _add(self, record: SessionRecord) -> OpenSession:
        session = OpenSession(record)
        if len(self._open) >= MAX_SESSIONS or self._bytes + session.size > MAX_BYTES:
            raise TooManySessions
        self._bytes += session.size
        self._open[record.id] = session
        return session

    def find(self, session_id: str) -> OpenSession | None:
        return self._open.get(session_id)

    def get(self, session_id: str) -> OpenSession:
        session = self._open.get(session_id)
        if session is None:
            raise SessionNotFound
        return session

    def close(self, session_id: str) -> None:
        """Cancel what runs in it and forget it."""
        session = self.get(session_id)
        session.cancel()
        self._bytes -= session.size
        del self._open[session_id]

    def note_prompt(self, session_id: str, call_id: bytes) -> None:
        """A prompt was read, for whatever session it names."""
        session = self._open.get(session_id)
        if session is not None:
            session.note_prompt(call_id)

    def cancel(self, session_id: str) -> None:
        """A cancellation was read. One of an unknown session is ignored."""
        session = self._open.get(session_id)
        if session is not None:
            session.cancel()

    def __iter__(self) -> Iterator[OpenSession]:
        return iter(self._open.values())

    def save(self) -> bytes:
        """What `Sessions(saved=…)` takes."""
        return msgspec.json.encode([session.record for session in self])
