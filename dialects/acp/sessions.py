"""The sessions of one connection: what the client has opened, which prompts run, and their errors. Bounded; knows no task."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

import msgspec
from msgspec import Raw

from ...agents.editor import AcpOptions
from ...errors.decoders import decoder_for
from ...errors.exceptions import OperationError

if TYPE_CHECKING:
    from .generated.structs import McpServer

AUTHENTICATION_REQUIRED: Final = -32000

MAX_SESSIONS: Final = 1024
"""Sessions that one client may have open."""

MAX_BYTES: Final = 16 * 1024 * 1024
"""Bytes that the sessions of one client may take together: their directories and MCP servers, as JSON."""

MAX_UNBEGUN: Final = 16
"""Prompts of one session that may be cancelled before they begin: one may run, so a client that sends more is mistaken."""


_ABSOLUTE: Final = re.compile(r"/|\\\\|[A-Za-z]:[\\/]")


class SessionNotFound(OperationError, code="SESSION_NOT_FOUND", number=-32002, http_status=404):
    """There is no such session."""


class TooManySessions(OperationError, code="TOO_MANY_SESSIONS", http_status=429):
    """Too many sessions are open: close some."""


class AuthenticationFailed(
    OperationError, code="AUTHENTICATION_FAILED", number=AUTHENTICATION_REQUIRED, http_status=401
):
    """Signing in has failed."""


class _FileSystem(msgspec.Struct, rename="camel", frozen=True):
    read_text_file: bool | None = None
    write_text_file: bool | None = None


class _Empty(msgspec.Struct, frozen=True):
    """Says by being there that the client can do something."""


class _Elicitation(msgspec.Struct, frozen=True):
    form: _Empty | None = None
    url: _Empty | None = None


class _ConfigOptions(msgspec.Struct, frozen=True):
    boolean: _Empty | None = None


class _Session(msgspec.Struct, rename="camel", frozen=True):
    config_options: _ConfigOptions | None = None


class _Auth(msgspec.Struct, frozen=True):
    terminal: bool | None = None


class ClientCapabilities(msgspec.Struct, frozen=True):
    """The abilities of the client for an executor."""

    fs: _FileSystem | None = None
    terminal: bool | None = None
    session: _Session | None = None
    auth: _Auth | None = None
    elicitation: _Elicitation | None = None

    @property
    def shows_switches(self) -> bool:
        """Whether options may be switches."""
        options = None if self.session is None else self.session.config_options
        return options is not None and options.boolean is not None

    @property
    def signs_in_by_terminal(self) -> bool:
        return self.auth is not None and bool(self.auth.terminal)


def is_absolute(path: str) -> bool:
    """Whether a path is absolute on the client's system, which may be another than ours."""
    return _ABSOLUTE.match(path) is not None


class SessionRecord(msgspec.Struct):
    """A session as it is handed on at a live reload. `task_id` is the task with which the next prompt goes on.

    MCP servers stay JSON text: decoded, they may take twenty times as much.
    """

    id: str
    cwd: str
    directories: tuple[str, ...]
    mcp_servers: Raw
    mode: str | None
    config: dict[str, str | bool]
    task_id: str | None = None
    title: str | None = None

    def absolute(self, path: str) -> str:
        """The path; a relative one is in the session's directory."""
        if is_absolute(path):
            return path
        separator = "/" if self.cwd.startswith("/") or "\\" not in self.cwd else "\\"
        return f"{self.cwd.rstrip(separator)}{separator}{path}"


@final
class OpenSession:
    """One open session."""

    __slots__ = ("_cancelled", "_unbegun", "cancel_turn", "record", "size")

    def __init__(self, record: SessionRecord) -> None:
        self.record: Final = record
        self.size: Final = len(msgspec.json.encode(record))
        self.cancel_turn: Callable[[], None] | None = None
        """Cancels the prompt that runs."""
        self._unbegun: dict[int, None] = {}
        self._cancelled: frozenset[int] = frozenset()

    def note_prompt(self, call_id: bytes) -> None:
        """A prompt was read. It begins later, or is refused. Of its id, which may be long, a hash is kept."""
        mark = hash(call_id)
        self._cancelled -= {mark}  # of a prompt that is over
        self._unbegun[mark] = None
        while len(self._unbegun) > MAX_UNBEGUN:
            del self._unbegun[next(iter(self._unbegun))]

    def cancel(self) -> None:
        """Cancel what was read before: the prompt that runs, and those that have not begun."""
        if self.cancel_turn is not None:
            self.cancel_turn()
        self._cancelled = frozenset(self._unbegun)

    def begin_prompt(self, call_id: str | None) -> bool:
        """A prompt begins; False where it was cancelled before."""
        mark = hash((call_id or "").encode())
        self._unbegun.pop(mark, None)
        return mark not in self._cancelled


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
        """Open a session, or open it anew. Raises `TooManySessions`; then what was open stays open."""
        record = SessionRecord(
            session_id,
            cwd,
            tuple(directories or ()),
            Raw(msgspec.json.encode(servers or [])),
            self._options.modes[0].id if self._options.modes else None,
            {option.id: option.initial for option in self._options.config_options},
        )
        return self._add(record)

    def _add(self, record: SessionRecord) -> OpenSession:
        session, before = OpenSession(record), self._open.get(record.id)
        others, held = len(self._open) - (before is not None), self._bytes - (0 if before is None else before.size)
        if others >= MAX_SESSIONS or held + session.size > MAX_BYTES:
            raise TooManySessions
        if before is not None:
            self.close(record.id)
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

    def save(self) -> bytes:
        """Return the value for `Sessions(saved=…)`."""
        return msgspec.json.encode([session.record for session in self._open.values()])
