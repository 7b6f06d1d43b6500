"""Which media types are JSON, text, streams or bytes, and which of several is taken."""

from __future__ import annotations

from typing import Final

from .model import BodyForm, ReplyForm

JSON: Final = "application/json"
OCTETS: Final = "application/octet-stream"
STREAMS: Final[frozenset[ReplyForm]] = frozenset({"events", "event-data", "lines"})

_LINES: Final = frozenset(
    f"application/{name}"
    for name in "jsonl x-jsonlines jsonlines x-ndjson ndjson json-seq geo+json-seq stream+json".split()
)
_TEXTS: Final = frozenset(
    f"application/{name}"
    for name in "xml yaml x-yaml javascript graphql toml sql csv rtf pem-certificate-chain".split()
)


def plain(media_type: str) -> str:
    """Return the media type without params, in lower case."""
    return media_type.partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    """Whether values of this type are JSON (RFC 6838, section 4.2.8, for `+json`)."""
    name = plain(media_type)
    return name in (JSON, "text/json", "*/json") or (name.endswith("+json") and name != "application/stream+json")


def is_any(media_type: str) -> bool:
    """Whether this may be JSON, or anything else."""
    return plain(media_type) in ("*/*", "*", "application/*")


def is_text(media_type: str) -> bool:
    """Whether values of this type are texts."""
    name = plain(media_type)
    return name.startswith("text/") or name in _TEXTS or name.endswith(("+xml", "+yaml"))


def body_form(media_type: str) -> BodyForm:
    """Return how a body of this type is written."""
    if is_json(media_type) or is_any(media_type):
        return "json"
    match plain(media_type):
        case "application/x-www-form-urlencoded":
            return "form"
        case "multipart/form-data":
            return "multipart"
        case name:
            return "text" if is_text(name) or name in _LINES else "binary"


def sent_as(media_type: str) -> str:
    """Return the media type that a body of this one is sent as: a range is none."""
    if "*" not in media_type:
        return media_type.strip()
    form = body_form(media_type)
    return JSON if form == "json" else "text/plain" if form == "text" else OCTETS


_BODY_ORDER: Final[tuple[BodyForm, ...]] = ("json", "form", "multipart", "text", "binary")


def body_rank(media_type: str) -> tuple[int, bool, bool]:
    """Return the rank of a body's type. The lowest is taken: JSON itself, other JSON, what may be JSON, forms, text, bytes."""
    return _BODY_ORDER.index(body_form(media_type)), is_any(media_type), plain(media_type) != JSON


def reply_form(media_type: str) -> ReplyForm:
    """Return how a reply of this type is read. For an SSE stream, `events`."""
    name = plain(media_type)
    if name == "text/event-stream":
        return "events"
    if name in _LINES:
        return "lines"
    if is_json(media_type) or is_any(media_type):
        return "json"
    return "text" if is_text(media_type) else "binary"


def reply_rank(media_type: str, *, is_error: bool) -> int:
    """Return the rank of a reply's type, as `body_rank`. No error is a stream."""
    form = reply_form(media_type)
    if form == "json":
        return 1 if is_any(media_type) else 0
    return 2 if form in STREAMS and not is_error else 3
