"""A session as one HTML page, for a browser. The page loads nothing, and nothing in a recording can run in it.

It has a row for each request with its answer and events, and for what is neither. It is bounded, however long the recording is:
in rows, in events, and in characters of values. What is left out is counted.

The recording goes in as data: JSON whose `<` are escaped, which the page's script writes as text. A policy (CSP) allows
that script, by its hash, and nothing else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias, final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ...client.messages import DECODE_ERRORS
from ...errors.decoders import decoder_for
from ...errors.printable import cut, printable, printable_json
from ...pages import inline
from ..format import ClosedEntry, EndEntry, Entry, MessageEntry, OmittedEntry, Sender, StartEntry, StderrEntry
from .correlation import Correlation, SeenMessage, text_of
from .lines import ending

_HERE: Final = __package__ or ""
_SCRIPTS: Final = tuple((_HERE, name) for name in ("session.js", "timeline.js", "page.js"))
_ROWS_AT_ONCE: Final = 500


def page(entries: Iterable[Entry], *, name: str) -> Iterator[str]:
    """The parts of the page, to be written one after the other; a line end may stand between them.

    All entries are read before the first part. Raises what reading them raises.
    """
    session = Rows(entries, name)
    css = inline.styles_of(inline.text_of(inline.PALETTE, (_HERE, "page.css")))
    script = inline.script_of(inline.text_of(inline.DOM, *_SCRIPTS))
    before, after = inline.text_of((_HERE, "page.html")).split("DATA\n")
    yield before.replace("POLICY", inline.policy(css, script)).replace("CSS", css).rstrip()
    yield f'{{"facts":{_data(session.facts)},"rows":['
    for at in range(0, len(session.rows), _ROWS_AT_ONCE):
        yield ("," if at else "") + ",".join(map(_data, session.rows[at : at + _ROWS_AT_ONCE]))
    yield "]}"
    yield after.replace("SCRIPT", script).rstrip()


def _data(value: msgspec.Struct) -> str:
    """JSON that no HTML parser takes for markup."""
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).replace("<", "\\u003c")


MAX_ROWS: Final = 50_000
"""How many rows and events a page has. A browser scrolls through so many without delay."""

MAX_EVENTS: Final = 1_000
"""How many events a row has."""

VALUE_CHARACTERS: Final = 32_768
"""How much of params, of a result or of an event is in a page."""

TOTAL_CHARACTERS: Final = 12 * 1024 * 1024
"""How much of all values is in a page. When it is used up, further values are cut to `SHORT_CHARACTERS`."""

SHORT_CHARACTERS: Final = 200
NOTE_CHARACTERS: Final = 300
STDERR_CHARACTERS: Final = 2_000

RowKind: TypeAlias = Literal["request", "notification", "answer", "other", "stderr", "omitted", "closed", "end"]
RowStatus: TypeAlias = Literal["ok", "error", "cancelled", "waiting", ""]
"""Of a request: `waiting` for an answer that did not come."""


class Value(msgspec.Struct, frozen=True, array_like=True):
    """A JSON text of `size` bytes; `text` is only its beginning if it was `cut`."""

    text: str
    size: int
    cut: bool


class Event(msgspec.Struct, frozen=True, array_like=True):
    """What belongs to a request beside its answer."""

    kind: Literal["event", "progress", "cancel"]
    sender: Sender
    ms: float
    method: str
    value: Value | None


class Row(msgspec.Struct, array_like=True):
    """One row. `end` is when the answer came. `note` says what an error says, or is the text of a line."""

    kind: RowKind
    sender: Sender
    ms: float
    name: str = ""
    id: str = ""
    end: float | None = None
    status: RowStatus = ""
    note: str = ""
    value: Value | None = None
    answer: Value | None = None
    events: list[Event] = msgspec.field(default_factory=list)
    further_events: int = 0


class Facts(msgspec.Struct, frozen=True):
    """What a page says of the session as a whole, and not of its rows. `further` rows and events are in the recording alone."""

    name: str
    command: str
    framing: str
    ending: str
    duration: float
    messages: int
    further: int


class _Error(msgspec.Struct):
    code: Raw | UnsetType = UNSET
    message: str | UnsetType = UNSET


@final
class Rows:
    """The rows of one session, in the order of the entries."""

    def __init__(self, entries: Iterable[Entry], name: str) -> None:
        """Read all entries. Raises what reading them raises."""
        self.rows: list[Row] = []
        self._requests: dict[int, Row] = {}
        self._correlation = Correlation()
        self._held = 0  # rows and events
        self._characters = TOTAL_CHARACTERS  # left
        self._further = 0
        self._messages = 0
        self._duration = 0.0
        self._command, self._framing, self._ending = "", "", "the recording was cut off"
        for entry in entries:
            self._duration = max(self._duration, entry.ms)
            self._add_entry(entry)
        self.facts = Facts(
            printable(os.path.basename(name)),
            self._command,
            self._framing,
            self._ending,
            self._duration,
            self._messages,
            self._further,
        )

    def _add_entry(self, entry: Entry) -> None:
        match entry:
            case StartEntry():
                self._command = cut(printable(" ".join(entry.command)), NOTE_CHARACTERS)
                self._framing = entry.framing
            case MessageEntry():
                self._messages += 1
                self._add_message(entry, self._correlation.read(entry))
            case OmittedEntry():
                note = cut(printable(f"{entry.size} bytes left out: {entry.reason}"), NOTE_CHARACTERS)
                self._add(Row("omitted", entry.sender, entry.ms, note=note))
            case ClosedEntry():
                self._add(Row("closed", entry.sender, entry.ms, note="end of the stream"))
            case StderrEntry():
                self._add(Row("stderr", "server", entry.ms, note=cut(printable(entry.text), STDERR_CHARACTERS)))
            case EndEntry():
                self._ending = ending(entry.status)
                self._add(Row("end", "server", entry.ms, note=self._ending))

    def _add_message(self, entry: MessageEntry, seen: SeenMessage) -> None:
        match seen.kind:
            case "request":
                self._add_request(entry, seen)
            case "answer" | "error":
                self._add_answer(entry, seen)
            case "event" | "progress" | "cancel" if seen.request is not None:
                row = self._requests.get(seen.request.number)
                if row is None or len(row.events) >= MAX_EVENTS or self._held >= MAX_ROWS:
                    self._count_further(row)
                    return
                self._held += 1
                row.events.append(Event(seen.kind, entry.sender, entry.ms, seen.method, self._value(seen.value)))
            case "other":
                self._add(Row("other", entry.sender, entry.ms), seen.value)
            case _:
                self._add(Row("notification", entry.sender, entry.ms, seen.method, seen.id), seen.value)

    def _add_request(self, entry: MessageEntry, seen: SeenMessage) -> None:
        assert seen.request is not None  # a request is its own
        row = Row("request", entry.sender, entry.ms, seen.method, seen.id, status="waiting")
        if self._add(row, seen.value):
            self._requests[seen.request.number] = row

    def _add_answer(self, entry: MessageEntry, seen: SeenMessage) -> None:
        failed = seen.kind == "error"
        note = _error_note(seen.value) if failed else ""
        if seen.request is None:
            row = Row("answer", entry.sender, entry.ms, "", seen.id, None, "error" if failed else "ok", note)
            if self._add(row):
                row.answer = self._value(seen.value)
        elif (asked := self._requests.get(seen.request.number)) is not None:
            cancelled = failed and any(event.kind == "cancel" for event in asked.events)
            asked.end = entry.ms
            asked.status = "cancelled" if cancelled else "error" if failed else "ok"
            asked.note = note
            asked.answer = self._value(seen.value)

    def _add(self, row: Row, value: Raw | None = None) -> bool:
        if self._held >= MAX_ROWS:
            self._further += 1
            return False
        self._held += 1
        row.value = self._value(value)
        self.rows.append(row)
        return True

    def _count_further(self, row: Row | None) -> None:
        if row is None:
            self._further += 1
        else:
            row.further_events += 1

    def _value(self, value: Raw | None) -> Value | None:
        """The text, as much as fits."""
        if value is None:
            return None
        size = memoryview(value).nbytes
        limit = VALUE_CHARACTERS if self._characters > 0 else SHORT_CHARACTERS
        whole = size <= limit
        text = bytes(memoryview(value)[:limit]).decode("utf-8", "backslashreplace" if whole else "ignore")
        self._characters -= len(text)
        return Value(printable_json(text), size, not whole)


def _error_note(value: Raw | None) -> str:
    try:
        error = decoder_for(_Error)(b"{}" if value is None else value)
    except DECODE_ERRORS:
        return ""
    code = "" if error.code is UNSET else text_of(error.code, NOTE_CHARACTERS)
    message = "" if error.message is UNSET else printable(error.message)
    return cut(f"{code} {message}".strip(), NOTE_CHARACTERS)
