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
from msgspec import Raw

from ..client.messages import DECODE_ERRORS
from ..errors.decoders import decoder_for
from ..errors.printable import cut, printable, printable_json
from ..pages import inline
from .format import ClosedEntry, EndEntry, Entry, MessageEntry, OmittedEntry, Sender, StartEntry, StderrEntry
from .lines import Correlation, SeenMessage, note_of, text_of

_HERE: Final = __package__ or ""
_SCRIPTS: Final = tuple((_HERE, name) for name in ("session.js", "timeline.js", "page.js"))
_ROWS_AT_ONCE: Final = 500


def page(entries: Iterable[Entry], *, name: str) -> Iterator[str]:
    """Yield the parts of the page, to be written one after the other; a line end may stand between them.

    All entries are read before the first part. Raises what reading them raises.
    """
    session = Rows(entries, name)
    css = inline.styles_of(inline.text_of(inline.PALETTE, inline.MESSAGES_CSS, (_HERE, "page.css")))
    script = inline.script_of(inline.text_of(inline.DOM, inline.MESSAGES, *_SCRIPTS))
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
NOTE_CHARACTERS: Final = 2_000

RowKind: TypeAlias = Literal["request", "notification", "answer", "other", "stderr", "omitted", "closed", "end"]
RowStatus: TypeAlias = Literal["ok", "error", "cancelled", "waiting", ""]
"""Of a request: `waiting` for an answer that did not come."""


class Value(msgspec.Struct, frozen=True, array_like=True):
    """A JSON text of `size` bytes; `text` is only its beginning if it was `cut`."""

    text: str
    size: int
    cut: bool


class Event(msgspec.Struct, frozen=True, array_like=True):
    """An event of a request beside its answer."""

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
    events: list[Event] = []
    further_events: int = 0


class Facts(msgspec.Struct):
    """The facts of the session as a whole, beside its rows. `further` rows and events are in the recording alone."""

    name: str
    command: str = ""
    framing: str = ""
    ending: str = "the recording was cut off"
    duration: float = 0.0
    messages: int = 0
    further: int = 0


class _Error(msgspec.Struct):
    code: Raw = Raw()
    message: str = ""


@final
class Rows:
    """The rows of one session, in the order of the entries."""

    def __init__(self, entries: Iterable[Entry], name: str) -> None:
        """Read all entries. Raises what reading them raises."""
        self.rows: list[Row] = []
        self.facts = Facts(printable(os.path.basename(name)))
        self._requests: dict[int, Row] = {}
        self._correlation = Correlation()
        self._held = 0  # rows and events
        self._characters = TOTAL_CHARACTERS  # left
        for entry in entries:
            self.facts.duration = max(self.facts.duration, entry.ms)
            self._add_entry(entry)

    def _add_entry(self, entry: Entry) -> None:
        note = cut(note_of(entry), NOTE_CHARACTERS)
        match entry:
            case MessageEntry():
                self.facts.messages += 1
                self._add_message(entry, self._correlation.read(entry))
            case StartEntry():
                self.facts.command, self.facts.framing = note, entry.framing
            case OmittedEntry():
                self._add(Row("omitted", entry.sender, entry.ms, note=note))
            case ClosedEntry():
                self._add(Row("closed", entry.sender, entry.ms, note=note))
            case StderrEntry():
                self._add(Row("stderr", "server", entry.ms, note=note))
            case EndEntry():
                self.facts.ending = note
                self._add(Row("end", "server", entry.ms, note=note))

    def _add_message(self, entry: MessageEntry, seen: SeenMessage) -> None:
        row = None if seen.request is None else self._requests.get(seen.request.number)
        match seen.kind:
            case "request":
                assert seen.request is not None  # a request is its own
                row = Row("request", entry.sender, entry.ms, seen.method, seen.id, status="waiting")
                if self._add(row, seen.value):
                    self._requests[seen.request.number] = row
            case "answer" | "error":
                if seen.request is None:
                    self._add(row := Row("answer", entry.sender, entry.ms, id=seen.id))
                if row is not None:
                    self._add_answer(row, entry.ms, seen)
            case "event" | "progress" | "cancel" if seen.request is not None:
                if row is not None and len(row.events) < MAX_EVENTS and self._held < MAX_ROWS:
                    self._held += 1
                    row.events.append(Event(seen.kind, entry.sender, entry.ms, seen.method, self._value(seen.value)))
                elif row is not None:
                    row.further_events += 1
                else:
                    self.facts.further += 1
            case "other":
                self._add(Row("other", entry.sender, entry.ms), seen.value)
            case _:
                self._add(Row("notification", entry.sender, entry.ms, seen.method, seen.id), seen.value)

    def _add_answer(self, row: Row, ms: float, seen: SeenMessage) -> None:
        if row.kind == "request":
            row.end = ms
        row.answer = self._value(seen.value)
        row.status = "ok"
        if seen.kind == "error":
            row.status = "cancelled" if any(event.kind == "cancel" for event in row.events) else "error"
            row.note = _error_note(seen.value)

    def _add(self, row: Row, value: Raw | None = None) -> bool:
        if self._held >= MAX_ROWS:
            self.facts.further += 1
            return False
        self._held += 1
        row.value = self._value(value)
        self.rows.append(row)
        return True

    def _value(self, value: Raw | None) -> Value | None:
        """Return the text, as much as fits."""
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
        error = decoder_for(_Error)(value or b"{}")
    except DECODE_ERRORS:
        return ""
    return cut(f"{text_of(error.code, SHORT_CHARACTERS)} {printable(error.message)}".strip(), SHORT_CHARACTERS)
