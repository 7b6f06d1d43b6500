"""Finds out what each message of a session is, and which request it belongs to. Never renders, never reads a file.

Only the members that say so are looked at: params and results stay JSON texts, however large they are.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, TypeVar, final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ...client.messages import DECODE_ERRORS, STREAM_EVENT
from ...errors.decoders import decoder_for
from ...errors.printable import cut, printable
from ..format import JSON_ERRORS, MessageEntry, Sender, load

NAME_CHARACTERS: Final = 160
"""How much of a method's name and of an id is kept."""

MAX_OPEN: Final = 16_384
"""How many requests may wait for their answers. The answer to an older one is shown without its request."""

MAX_TOKENS: Final = 16_384
"""How many tokens of progress are remembered."""

MessageKind: TypeAlias = Literal["request", "answer", "error", "event", "progress", "cancel", "notification", "other"]
"""`answer` is a result, `error` an answer that is one; `event` is one of a stream; `other` is no message of JSON-RPC."""

CANCELLATIONS: Final = frozenset({"$/cancelRequest", "$/cancel_request", "notifications/cancelled"})
"""Of LSP and the built-in methods, of ACP, of MCP."""

_PROGRESS: Final = frozenset({"$/progress", "notifications/progress"})
_ACP_PROMPT, _ACP_UPDATE = "session/prompt", "session/update"
_CREATES_PROGRESS: Final = "window/workDoneProgress/create"
_OF_REQUESTS: Final = frozenset({STREAM_EVENT, _ACP_UPDATE, *_PROGRESS, *CANCELLATIONS})
"""The notifications that belong to a request."""

_MAX_PEEKED_BYTES: Final = 4096
"""The longest JSON text that is decoded to be a name."""


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


class _Envelope(msgspec.Struct):
    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Params(msgspec.Struct):
    """The members that name another request."""

    id: Raw | UnsetType = UNSET
    value: Raw | UnsetType = UNSET
    token: Raw | UnsetType = UNSET
    session: Raw | UnsetType = msgspec.field(default=UNSET, name="sessionId")
    request_id: Raw | UnsetType = msgspec.field(default=UNSET, name="requestId")
    progress_token: Raw | UnsetType = msgspec.field(default=UNSET, name="progressToken")
    work_done: Raw | UnsetType = msgspec.field(default=UNSET, name="workDoneToken")
    partial_result: Raw | UnsetType = msgspec.field(default=UNSET, name="partialResultToken")
    meta: Raw | UnsetType = msgspec.field(default=UNSET, name="_meta")


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
        envelope = _decode(entry.message, _Envelope)
        if envelope is None:
            return SeenMessage("other", "", "", entry.message)
        method = "" if envelope.method is UNSET else _name(envelope.method)
        if not method:
            return self._answer(entry.sender, envelope)
        params = None if envelope.params is UNSET else envelope.params
        if envelope.id is not UNSET:
            return self._request(entry, _text(envelope.id), method, params)
        return self._notification(entry.sender, method, params)

    def _request(self, entry: MessageEntry, number: str, method: str, params: Raw | None) -> SeenMessage:
        request = Request(self.requests, entry.sender, number, method, entry.ms)
        self.requests += 1
        _put(self._open, (entry.sender, number), request, MAX_OPEN)
        members = None if params is None else _decode(params, _Params)
        if members is not None and method == _CREATES_PROGRESS and members.token is not UNSET:
            _put(self._tokens, (entry.sender, _text(members.token)), request, MAX_TOKENS)
        elif members is not None and method == _ACP_PROMPT and members.session is not UNSET:
            _put(self._tokens, (_other(entry.sender), _session(members.session)), request, MAX_TOKENS)
        elif members is not None:
            meta = None if members.meta is UNSET else _decode(members.meta, _Params)
            for token in (members.work_done, members.partial_result, UNSET if meta is None else meta.progress_token):
                if token is not UNSET:
                    _put(self._tokens, (_other(entry.sender), _text(token)), request, MAX_TOKENS)
        return SeenMessage("request", number, method, params, request)

    def _answer(self, sender: Sender, envelope: _Envelope) -> SeenMessage:
        number = "null" if envelope.id is UNSET else _text(envelope.id)
        request = self._open.pop((_other(sender), number), None)
        self.answered += request is not None
        method = "" if request is None else request.method
        if envelope.error is not UNSET:
            return SeenMessage("error", number, method, envelope.error, request)
        return SeenMessage("answer", number, method, None if envelope.result is UNSET else envelope.result, request)

    def _notification(self, sender: Sender, method: str, params: Raw | None) -> SeenMessage:
        plain = SeenMessage("notification", "", method, params)
        if method not in _OF_REQUESTS:
            return plain
        members = None if params is None else _decode(params, _Params)
        if members is None:
            return plain
        if method == STREAM_EVENT:
            number = "null" if members.id is UNSET else _text(members.id)
            value = None if members.value is UNSET else members.value
            return SeenMessage("event", number, method, value, self._open.get((_other(sender), number)))
        if method in CANCELLATIONS:
            named = members.request_id if members.id is UNSET else members.id
            request = None if named is UNSET else self._open.get((sender, _text(named)))
            return SeenMessage("cancel", "", method, params, request)
        if method == _ACP_UPDATE:
            prompt = None if members.session is UNSET else self._tokens.get((sender, _session(members.session)))
            is_open = prompt is not None and self._open.get((prompt.asker, prompt.id)) is prompt
            return SeenMessage("progress", "", method, params, prompt) if is_open else plain
        named = members.progress_token if members.token is UNSET else members.token
        request = None if named is UNSET else self._tokens.get((sender, _text(named)))
        return SeenMessage("progress", "", method, params, request)


def text_of(value: Raw, characters: int) -> str:
    """The beginning of a JSON text, as one line that can be printed. A cut one ends with `…`."""
    view = memoryview(value)
    most = 4 * (characters + 1)  # bytes
    text = bytes(view[:most]).decode("utf-8", "ignore" if view.nbytes > most else "backslashreplace")
    shown = printable(text[: characters + 1])
    return shown if len(shown) <= characters else f"{shown[:characters]}…"


_T = TypeVar("_T")


def _decode(text: Raw, type_: type[_T]) -> _T | None:
    """None for a text that is no object."""
    try:
        return decoder_for(type_)(text)
    except DECODE_ERRORS:
        return None


def _name(text: Raw) -> str:
    """The name that a JSON string holds; empty for anything else."""
    if memoryview(text).nbytes > _MAX_PEEKED_BYTES:
        return _text(text)
    try:
        value = load(bytes(text))
    except JSON_ERRORS:
        return ""
    return cut(printable(value), NAME_CHARACTERS) if isinstance(value, str) else ""


def _text(value: Raw) -> str:
    return text_of(value, NAME_CHARACTERS)


def _session(value: Raw) -> str:
    """A key for a session of ACP among the tokens, which are JSON texts."""
    return f"session {_text(value)}"


def _put(table: dict[_Key, Request], key: _Key, request: Request, limit: int) -> None:
    """Add the youngest; the oldest makes room."""
    table.pop(key, None)
    table[key] = request
    if len(table) > limit:
        del table[next(iter(table))]


def _other(side: Sender) -> Sender:
    return "server" if side == "client" else "client"
