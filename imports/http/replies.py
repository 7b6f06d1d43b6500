"""Interprets a response by the document: finds the reply, its JSON, and the events of a stream. Reads from no connection.

An event is bounded in bytes, not the stream.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Final, TypeAlias, final

import msgspec
from msgspec import Raw

from ...daemon.rpc.envelope import json_failure
from ...framing.http import SseEvent, SseParser, TooLarge
from .model import STREAMS, HttpOperation, Reply, ReplyForm, UpstreamFault

NULL: Final = Raw(b"null")

_BOM: Final = b"\xef\xbb\xbf"

_CHARSETS: Final = {
    "": "utf-8",
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "ascii",
    "ascii": "ascii",
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "windows-1252": "cp1252",
    "iso-8859-15": "iso-8859-15",
    "utf-16": "utf-16",
}
"""Charsets of texts, with what decodes them (WHATWG Encoding: what calls itself Latin-1 is windows-1252)."""


class MediaType(msgspec.Struct, frozen=True):
    """The value of a header `Content-Type`. `name` is in lower case, empty where there is none."""

    name: str
    charset: str


def parse_media_type(text: str) -> MediaType:
    """RFC 9110, section 8.3.1; only the parameter `charset` is read."""
    name, *parameters = text.split(";")
    charset = next(
        (value for key, _, value in (each.partition("=") for each in parameters) if key.strip().lower() == "charset"),
        "",
    )
    return MediaType(name.strip().lower(), charset.strip().strip('"').lower())


def accepted_types(operation: HttpOperation, *, streamed: bool, asked: str = "") -> str:
    """The header `Accept`: what a success can be, or what is `asked` for, then what errors can be."""
    wanted: dict[str, None] = {}
    others: dict[str, None] = {}
    for reply in operation.replies:
        for media_type, form in reply.forms.items():
            if not reply.code and (
                media_type == asked if asked else media_type not in reply.asked and (form in STREAMS) is streamed
            ):
                wanted[media_type] = None
            elif reply.code and form not in STREAMS:
                others[media_type] = None
    listed = [*wanted, *(f"{each};q=0.9" for each in others if each not in wanted)]
    return ", ".join(listed) if wanted and "*/*" not in wanted and _is_short(listed) else "*/*"


def _is_short(types: list[str]) -> bool:
    return len(types) <= 20 and all(each.isascii() and each.isprintable() and len(each) <= 200 for each in types)


def declared_reply(operation: HttpOperation, status: int) -> Reply | None:
    """The reply that a status is: declared itself, by its range, or by `default`."""
    replies = {reply.status.upper(): reply for reply in operation.replies}
    return replies.get(str(status)) or replies.get(f"{status // 100}XX") or replies.get("DEFAULT")


def form_of(reply: Reply, media_type: MediaType) -> ReplyForm | None:
    """The form of a response's body; None for a media type that the reply does not declare.

    The nearest declaration counts. A response without a type is of the only declared one. JSON of any type is JSON where JSON is
    declared.
    """
    forms: dict[str, ReplyForm] = {
        declared.partition(";")[0].strip().lower(): form for declared, form in reply.forms.items()
    }
    if not forms:
        return "nothing"
    name = media_type.name
    if not name:
        return next(iter(forms.values())) if len(set(forms.values())) == 1 else None
    for pattern in (name, f"{name.partition('/')[0]}/*", "*/*"):
        if pattern in forms:
            return forms[pattern]
    if name.endswith(("/json", "+json")) and "json" in forms.values():
        return "json"
    return None


def json_of(form: ReplyForm | None, body: bytes, charset: str) -> Raw:
    """The body as JSON text. Raises `UpstreamFault`."""
    match form:
        case "json":
            return json_text(body)
        case "text":
            return Raw(msgspec.json.encode(_text(body, charset)))
        case "binary":
            return Raw(msgspec.json.encode(b64encode(body).decode()))
        case "nothing":
            return NULL
        case _:
            raise UpstreamFault("content-type")


def json_text(body: bytes) -> Raw:
    """Return a JSON text in UTF-8 on one line. Numbers keep all their digits, and keys may be there twice: the text is the
    upstream's, and the schema checks its meaning. Raises `UpstreamFault`."""
    body = body.removeprefix(_BOM)
    if json_failure(body) is not None:
        raise UpstreamFault("json")
    return Raw(msgspec.json.format(body, indent=-1) if b"\n" in body or b"\r" in body else body)


def _text(body: bytes, charset: str) -> str:
    codec = _CHARSETS.get(charset)
    if codec is None:
        raise UpstreamFault("encoding")
    try:
        return body.decode(codec).removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise UpstreamFault("encoding") from None


LAST_DATA: Final = b"[DONE]"
"""Ends a stream of data that is JSON otherwise: what servers of language models send at the end."""

_SEQUENCE: Final = "application/json-seq"
_RECORD_SEPARATOR: Final = b"\x1e"


def event_decoder(form: ReplyForm, media_type: str, *, limit: int) -> EventDecoder | None:
    """Return what decodes the body of a stream; None for a form that is no stream. `limit` is that of one event, in bytes."""
    match form:
        case "events" | "event-data":
            return ServerSentEvents(limit=limit, data_only=form == "event-data")
        case "lines":
            return JsonTexts(limit=limit, separator=_RECORD_SEPARATOR if media_type == _SEQUENCE else b"\n")
        case _:
            return None


@final
class ServerSentEvents:
    """WHATWG HTML, section 9.2. An event is an object of its own fields, or its data alone. One that was cut off is none."""

    def __init__(self, *, limit: int, data_only: bool) -> None:
        self._parser = SseParser(limit=limit)
        self._data_only = data_only
        self.is_over = False
        """Whether the stream has said itself that it is."""

    def feed(self, data: bytes) -> Iterator[Raw]:
        """Yield the events that are whole with these bytes. Raises `UpstreamFault`."""
        try:
            events = self._parser.feed(data)
        except TooLarge:
            raise UpstreamFault("too-large") from None
        for event in events:
            if self._data_only and event.data == LAST_DATA:
                self.is_over = True
                return
            yield _data_of(event) if self._data_only else _fields_of(event)

    def end(self) -> Iterator[Raw]:
        """Yield the event that the end of the body has made whole, if there is one. Raises `UpstreamFault`."""
        yield from ()


def _data_of(event: SseEvent) -> Raw:
    try:
        return json_text(event.data)
    except UpstreamFault:
        return Raw(msgspec.json.encode(event.data.decode(errors="replace")))


def _fields_of(event: SseEvent) -> Raw:
    fields: dict[str, str | int] = {}
    if event.type is not None:
        fields["event"] = event.type
    fields["data"] = event.data.decode(errors="replace")
    if event.has_own_id and event.id is not None:
        fields["id"] = event.id
    if event.retry_ms is not None:
        fields["retry"] = event.retry_ms
    return Raw(msgspec.json.encode(fields))


@final
class JsonTexts:
    """Reads JSON texts on a line each, or behind a record separator each (RFC 7464). Empty ones mean nothing.

    One on several lines ends with the next separator. If its first line is a whole text, that line is the event, without waiting
    for more.
    """

    def __init__(self, *, limit: int, separator: bytes) -> None:
        self.is_over: Final = False
        self._limit = limit
        self._separator = separator
        self._text = bytearray()
        self._has_lines = False

    def feed(self, data: bytes) -> Iterator[Raw]:
        """Yield the events that are whole with these bytes. Raises `UpstreamFault`."""
        first, *others = data.split(self._separator)
        yield from self._add(first)
        for text in others:
            yield from self.end()
            yield from self._add(text)

    def end(self) -> Iterator[Raw]:
        """Yield the event that the end of the body has made whole, if there is one. Raises `UpstreamFault`."""
        text = bytes(self._text).strip(b" \t\r\n" + _RECORD_SEPARATOR)
        self._text.clear()
        self._has_lines = False
        if text:
            yield json_text(text)

    def _add(self, part: bytes) -> Iterator[Raw]:
        if len(self._text) + len(part) > self._limit:
            raise UpstreamFault("too-large")
        self._text += part
        if not self._has_lines and part.endswith(b"\n"):
            self._has_lines = True
            text = bytes(self._text).strip(b" \t\r\n")
            if text and json_failure(text) is None:
                yield from self.end()


EventDecoder: TypeAlias = ServerSentEvents | JsonTexts
