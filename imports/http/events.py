"""Divides the body of a stream into events, each as JSON text: server-sent events, JSON lines, JSON sequences. Reads nothing.

An event is bounded in bytes, not the stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias, final

import msgspec
from msgspec import Raw

from ...daemon.rpc.envelope import json_failure
from ...framing.http import SseEvent, SseParser, TooLarge
from .faults import UpstreamFault
from .model import ReplyForm
from .replies import json_text

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
    """JSON texts on a line each, or behind a record separator each (RFC 7464). Empty ones mean nothing.

    One on several lines ends with the next separator. Where its first line is a whole text, that is the event: nobody waits for
    the next one.
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
