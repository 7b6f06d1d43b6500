"""Finds out what each message of a session is, and which request it belongs to. Never renders, never reads a file.

Only the members that say so are looked at: params and results stay JSON texts, however large they are.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, TypeVar, final

import msgspec
from msgspec import Raw

from ..client.messages import DECODE_ERRORS, STREAM_EVENT
from ..errors.decoders import decoder_for
from ..errors.printable import cut, printable
from .format import MessageEntry, Sender

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
