"""Handles the messages that an MCP server sends by itself: declines requests, logs messages, and notes changes of its lists.

Logs are bounded and without bodies. Sends nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal, TypeAlias, final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...client.dialects import MCP
from ...client.incoming import Handlers
from ...daemon.logs import RepeatedWarning, log
from ...errors.decoders import DECODE_ERRORS, convert
from ...errors.printable import cut, printable
from .watched import WatchedResources

ListKind: TypeAlias = Literal["tools", "resources", "prompts"]
KINDS: Final[tuple[ListKind, ...]] = ("tools", "resources", "prompts")

SHOWN_CHARACTERS: Final = 2000
"""Of a line or a log message of the server."""

LINES_PER_SECOND: Final = 50
"""Lines and log messages of one server that are logged; the others are counted."""

DIALECT: Final = replace(MCP, handshake=None)
"""Of a connection, whose handshake `session` makes."""

_SEVERE: Final = frozenset({"warning", "error", "critical", "alert", "emergency"})


class _LogMessage(Struct):
    level: str = "info"
    data: Any = None  # JSON


@final
class ServerMessages:
    """`on_changed(kind)` is called when the server says that a list has changed, `on_line(line)` with each line of its stderr, as
    much of it as is logged."""

    def __init__(
        self,
        import_name: str,
        on_changed: Callable[[ListKind], None] = lambda _: None,
        watched: WatchedResources | None = None,
        on_line: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.import_name: Final = import_name
        self.watched: Final = watched or WatchedResources()
        self._on_line = on_line
        self.last_line = ""
        """The end of the server's stderr, which often says why it died."""
        self._on_changed = on_changed
        self._stray = RepeatedWarning("import.stray_output")
        self._unexpected = RepeatedWarning("import.answer_unexpected")
        self._dropped = RepeatedWarning("import.message_dropped")
        self._second = 0
        self._lines = self._unlogged = 0

    def handlers(self) -> Handlers:
        """Return the handlers of the server's messages. We declare no capabilities, so nothing but `ping` may be asked."""
        handlers = Handlers(DIALECT)
        handlers.requests["ping"] = lambda _: {}
        handlers.notifications["notifications/message"] = self._take_log
        for kind in KINDS:
            handlers.notifications[f"notifications/{kind}/list_changed"] = partial(self._note_changed, kind)
        handlers.notifications["notifications/resources/updated"] = self._note_update
        handlers.unidentified_error = lambda _: self._unexpected(import_=self.import_name)
        handlers.garbage = lambda what: self._stray(import_=self.import_name, what=what)
        return handlers

    def _note_changed(self, kind: ListKind, params: Any) -> None:  # Any: JSON
        self._on_changed(kind)

    def _note_update(self, params: Any) -> None:
        if isinstance(params, dict) and isinstance(params.get("uri"), str):
            self.watched.note_update(params["uri"])

    def note_gap(self) -> None:
        """Count the lists as changed, since changes may have been missed."""
        self._on_changed("tools")

    def take_line(self, line: str) -> None:
        """Take a line of the server's stderr."""
        if line.strip():
            self.last_line = shown = cut(printable(line), SHOWN_CHARACTERS)
            self._on_line(shown)
            if self._may_log():
                log.info("import.stderr", import_=self.import_name, line=shown)

    def note_dropped(self) -> None:
        """A message to the server found no room, or did not arrive."""
        self._dropped(import_=self.import_name)

    def _take_log(self, params: Any) -> None:
        if not self._may_log():
            return
        try:
            told: _LogMessage = convert({} if params is None else params, _LogMessage)
        except DECODE_ERRORS:
            return
        text = told.data if isinstance(told.data, str) else msgspec.json.encode(told.data).decode()
        line = cut(printable(text), SHOWN_CHARACTERS)
        if told.level in _SEVERE:
            log.warning("import.log", import_=self.import_name, line=line)
        else:
            log.info("import.log", import_=self.import_name, line=line)

    def _may_log(self) -> bool:
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._lines = second, 0
            if self._unlogged:
                log.warning("import.lines_dropped", import_=self.import_name, count=self._unlogged)
                self._unlogged = 0
        self._lines += 1
        if self._lines > LINES_PER_SECOND:
            self._unlogged += 1
            return False
        return True
