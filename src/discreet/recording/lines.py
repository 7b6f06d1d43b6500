"""A session as lines for a terminal, and those of a running session on stderr. Never reads a file.

`Correlation` finds out what each message is, and which request it belongs to. Only the members that say so are looked at: params
and results stay JSON texts, however large they are.
"""

from __future__ import annotations

import os
import select
import sys
from typing import Final, Literal, TypeAlias, TypeVar, final

import msgspec
from msgspec import Raw

from ..client.messages import DECODE_ERRORS, STREAM_EVENT
from ..errors.decoders import decoder_for
from ..errors.printable import cut, printable
from .format import ClosedEntry, EndEntry, Entry, MessageEntry, OmittedEntry, Sender, StartEntry, StderrEntry

NAME_CHARACTERS: Final = 160
"""How much of a method's name and of an id is kept."""

MAX_OPEN: Final = 16_384
"""How many requests may wait for their answers, and tokens for their progress. Older ones are shown without their request."""

MessageKind: TypeAlias = Literal["request", "answer", "error", "event", "progress", "cancel", "notification", "other"]
"""`answer` is a result, `error` an answer that is one; `event` is one of a stream; `other` is no message of JSON-RPC."""

CANCELLATIONS: Final = frozenset({"$/cancelRequest", "$/cancel_request", "notifications/cancelled"})
"""Of LSP and the built-in methods, of ACP, of MCP."""

_PROGRESS: Final = frozenset({"$/progress", "notifications/progress"})
_ACP_PROMPT, _ACP_UPDATE = "session/prompt", "session/update"
_CREATES_PROGRESS: Final = "window/workDoneProgress/create"


class Request(msgspec.Struct, frozen=True):
    """A request that one side sent. `id` is its JSON text: 1 and "1" are two ids. `number` counts requests from 0."""

    number: int
    asker: Sender
    id: str
    method: str
    ms: float


class SeenMessage(msgspec.Struct, frozen=True):
    """One message. `method` is that of the request for an answer. `value` is what it carries: params, result, error or event.

    `request` is what it is or belongs to; None if that is not known. Every text is printable.
    """

    kind: MessageKind
    id: str
    method: str
    value: Raw | None
    request: Request | None = None


_ABSENT: Final = Raw()
_NULL: Final = Raw(b"null")


class _Envelope(msgspec.Struct):
    """The members of a message; empty where they are missing."""

    id: Raw = _ABSENT
    method: Raw = _ABSENT
    params: Raw = _ABSENT
    result: Raw = _ABSENT
    error: Raw = _ABSENT


class _Params(msgspec.Struct, rename="camel"):
    """The members that name another request; empty where they are missing."""

    id: Raw = _ABSENT
    value: Raw = _ABSENT
    token: Raw = _ABSENT
    session_id: Raw = _ABSENT
    request_id: Raw = _ABSENT
    progress_token: Raw = _ABSENT
    work_done_token: Raw = _ABSENT
    partial_result_token: Raw = _ABSENT
    meta: Raw = msgspec.field(default=_ABSENT, name="_meta")


_Key: TypeAlias = tuple[Sender, str]


@final
class Correlation:
    """The requests of one session that wait, so that each message finds its own. Messages are to be given in their order."""

    def __init__(self) -> None:
        self._open: dict[_Key, Request] = {}
        self._tokens: dict[_Key, Request] = {}
        """By the side that tells the progress."""
        self.requests = 0
        self.answered = 0

    def read(self, entry: MessageEntry) -> SeenMessage:
        """Say what the next message is."""
        envelope = _decode(entry.message, _Envelope)
        if envelope is None:
            return SeenMessage("other", "", "", entry.message)
        method = _name(envelope.method)
        if not method:
            return self._answer(entry.sender, envelope)
        members = _decode(envelope.params, _Params) or _Params()
        if envelope.id:
            return self._request(entry, _text(envelope.id), method, envelope.params, members)
        return self._notification(entry.sender, method, envelope.params, members)

    def _request(self, entry: MessageEntry, number: str, method: str, params: Raw, members: _Params) -> SeenMessage:
        request = Request(self.requests, entry.sender, number, method, entry.ms)
        self.requests += 1
        _put(self._open, (entry.sender, number), request)
        if method == _CREATES_PROGRESS:
            _put(self._tokens, (entry.sender, _text(members.token)), request)
        meta = _decode(members.meta, _Params) or _Params()
        tokens = [members.work_done_token, members.partial_result_token, meta.progress_token]
        names = [_text(token) for token in tokens if token]
        if method == _ACP_PROMPT:
            names.append(_session(members.session_id))
        for name in names:
            _put(self._tokens, (_other(entry.sender), name), request)
        return SeenMessage("request", number, method, params or None, request)

    def _answer(self, sender: Sender, envelope: _Envelope) -> SeenMessage:
        number = _text(envelope.id or _NULL)
        request = self._open.pop((_other(sender), number), None)
        self.answered += request is not None
        kind: MessageKind = "error" if envelope.error else "answer"
        value = envelope.error or envelope.result or None
        return SeenMessage(kind, number, "" if request is None else request.method, value, request)

    def _notification(self, sender: Sender, method: str, params: Raw, members: _Params) -> SeenMessage:
        kind: MessageKind = "notification"
        request: Request | None = None
        if method == STREAM_EVENT:
            number = _text(members.id or _NULL)
            return SeenMessage("event", number, method, members.value or None, self._open.get((_other(sender), number)))
        if method in CANCELLATIONS:
            kind, request = "cancel", self._open.get((sender, _text(members.id or members.request_id)))
        elif method in _PROGRESS:
            kind, request = "progress", self._tokens.get((sender, _text(members.token or members.progress_token)))
        elif method == _ACP_UPDATE:
            prompt = self._tokens.get((sender, _session(members.session_id)))
            if prompt is not None and self._open.get((prompt.asker, prompt.id)) is prompt:
                kind, request = "progress", prompt
        return SeenMessage(kind, "", method, params or None, request)


def text_of(value: Raw, characters: int) -> str:
    """Return the beginning of a JSON text, as one line that can be printed. A cut one ends with `…`."""
    view = memoryview(value)
    most = 4 * (characters + 1)  # bytes
    text = bytes(view[:most]).decode("utf-8", "ignore" if view.nbytes > most else "backslashreplace")
    shown = printable(text[: characters + 1])
    return shown if len(shown) <= characters else f"{shown[:characters]}…"


_T = TypeVar("_T")


def _decode(text: Raw, type_: type[_T]) -> _T | None:
    """Return None for a text that is no such value."""
    try:
        return decoder_for(type_)(text)
    except DECODE_ERRORS:
        return None


def _name(text: Raw) -> str:
    """Return the name that a JSON string holds; empty for anything else."""
    return cut(printable(_decode(text, str) or ""), NAME_CHARACTERS)


def _text(value: Raw) -> str:
    return text_of(value, NAME_CHARACTERS)


def _session(value: Raw) -> str:
    """Return a key for a session of ACP among the tokens, which are JSON texts."""
    return f"session {_text(value)}"


def _put(table: dict[_Key, Request], key: _Key, request: Request) -> None:
    """Add the youngest; the oldest makes room."""
    table.pop(key, None)
    table[key] = request
    if len(table) > MAX_OPEN:
        del table[next(iter(table))]


def _other(side: Sender) -> Sender:
    return "server" if side == "client" else "client"


SHOWN_CHARACTERS: Final = 160
"""How much of params and of a result is shown unless all is asked for."""

_CYAN, _PURPLE, _RED, _DIM = "36", "35", "31", "2"
_ARROWS: Final = {"client": ("→", _CYAN), "server": ("←", _PURPLE)}


@final
class Lines:
    """The lines of one session. An answer is shown with its request's method and the time that it took.

    With `full`, values of more than `SHOWN_CHARACTERS` are shown whole.
    """

    def __init__(self, *, full: bool = False, colour: bool) -> None:
        self._full = full
        self._colour = colour
        self._correlation = Correlation()
        self._messages = self._errors = 0
        self._slowest = ("", 0.0)
        self._ended = False

    def line(self, entry: Entry) -> str:
        """The line of the next entry, without a line end."""
        match entry:
            case MessageEntry():
                shown = f"{self._arrow(entry.sender)} {self._message(entry)}"
            case OmittedEntry():
                shown = f"{self._arrow(entry.sender)} {self._styled(_RED, note_of(entry))}"
            case ClosedEntry():
                shown = f"{self._arrow(entry.sender)} {self._styled(_DIM, note_of(entry))}"
            case StderrEntry():
                shown = self._styled(_DIM, f"stderr: {note_of(entry)}")
            case StartEntry():
                shown = self._styled(_DIM, f"{note_of(entry)}  ({entry.framing})")
            case EndEntry():
                self._ended = True
                shown = self._styled(_DIM, note_of(entry))
        return f"{self._styled(_DIM, f'{entry.ms:9.1f} ms')}  {shown}"

    def summary(self) -> str:
        """The counts of what was shown."""
        waiting = self._correlation.requests - self._correlation.answered
        parts = [
            counted(self._messages, "message"),
            counted(self._errors, "error"),
            f"{counted(waiting, 'request')} without an answer",
        ]
        if self._slowest[0]:
            parts.append(f"slowest: {self._slowest[0]}, {self._slowest[1]:.1f} ms")
        if not self._ended:
            parts.append("the recording was cut off")
        return ", ".join(parts)

    def _message(self, entry: MessageEntry) -> str:
        self._messages += 1
        seen = self._correlation.read(entry)
        match seen.kind:
            case "answer" | "error":
                return self._answer(entry.ms, seen)
            case "event":
                return f"{seen.id} event {self._value(seen.value)}".rstrip()
            case "other":
                return self._value(seen.value)
            case _:
                return " ".join(filter(None, (seen.id, seen.method, self._value(seen.value))))

    def _answer(self, ms: float, seen: SeenMessage) -> str:
        took = ""
        if seen.request is not None:
            spent = ms - seen.request.ms
            took = self._styled(_DIM, f"{spent:.1f} ms")
            if spent > self._slowest[1]:
                self._slowest = seen.method, spent
        value = self._value(seen.value)
        if seen.kind == "error":
            self._errors += 1
            value = self._styled(_RED, f"error {value}")
        return " ".join(filter(None, (seen.id, seen.method, took, value)))

    def _value(self, value: Raw | None) -> str:
        if value is None:
            return ""
        return text_of(value, memoryview(value).nbytes if self._full else SHOWN_CHARACTERS)

    def _arrow(self, sender: str) -> str:
        mark, colour = _ARROWS[sender]
        return self._styled(colour, mark)

    def _styled(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour and text else text


def note_of(entry: Entry) -> str:
    """Return what an entry says that is no message, as one line that can be printed."""
    match entry:
        case StartEntry():
            return printable(" ".join(entry.command))
        case OmittedEntry():
            return printable(f"{entry.size} bytes left out: {entry.reason}")
        case ClosedEntry():
            return "end of the stream"
        case StderrEntry():
            return printable(entry.text)
        case EndEntry(status=None):
            return "the server did not end"
        case EndEntry(status=int() as status):
            return (
                f"the server ended with status {status}" if status >= 0 else f"the server was ended by signal {-status}"
            )
        case _:
            return ""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


GRACE_SECONDS: Final = 0.05
"""How long the first line that a reader does not take is waited for. Then none is waited for until it takes one again."""

TAIL_CHARACTERS: Final = 900
"""How much of a line is written: what a pipe that is ready takes without blocking (PIPE_BUF of Linux), in UTF-8."""


@final
class Tail:
    """Writes the lines of a running session to a descriptor. A reader that is gone ends the writing, and nothing else.

    Lines that the reader does not take at once are left out, and a line says how many.
    """

    def __init__(self, fd: int, *, colour: bool, encoding: str = "utf-8") -> None:
        self._fd = fd
        self._encoding = encoding
        self._lines = Lines(colour=colour)
        self._left_out = 0
        self._ended = False

    def show(self, entry: Entry) -> None:
        """Write the line of an entry. The server's stderr is left out: it goes to the same place by itself."""
        if not isinstance(entry, StderrEntry):
            self._write(self._lines.line(entry))

    def close(self) -> None:
        """End with the summary."""
        self._write(self._lines.summary())

    def _write(self, line: str) -> None:
        seconds = 0 if self._left_out else GRACE_SECONDS
        line = line[:TAIL_CHARACTERS]
        if self._left_out:
            line = f"… {counted(self._left_out, 'line')} left out: they were not read in time\n{line}"
        data = f"{line}\n".encode(self._encoding, "backslashreplace")
        try:
            if not self._ended and self._is_ready(seconds):
                os.write(self._fd, data)
                self._left_out = 0
            else:
                self._left_out += 1
        except BlockingIOError:  # another process that shares the open file may have set O_NONBLOCK
            self._left_out += 1
        except OSError:  # the reader is gone, or the device is full
            self._ended = True

    def _is_ready(self, seconds: float) -> bool:
        if sys.platform == "win32":
            return True
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        return bool(poll.poll(seconds * 1000))
