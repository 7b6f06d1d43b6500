"""Which media types are JSON, text, streams or bytes, and which of several is taken."""

from __future__ import annotations

from typing import Final

from ..http.model import BodyForm, ReplyForm

JSON: Final = "application/json"
OCTETS: Final = "application/octet-stream"

_LINES: Final = frozenset(
    {
        "application/jsonl",
        "application/x-jsonlines",
        "application/jsonlines",
        "application/x-ndjson",
        "application/ndjson",
    }
    | {"application/json-seq", "application/geo+json-seq", "application/stream+json"}
)
_TEXTS: Final = frozenset(
    {"application/xml", "application/yaml", "application/x-yaml", "application/javascript", "application/graphql"}
    | {"application/toml", "application/sql", "application/csv", "application/rtf", "application/pem-certificate-chain"}
)


def plain(media_type: str) -> str:
    """The media type without params, in lower case."""
    return media_type.partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    name = plain(media_type)
    return name in (JSON, "text/json", "*/json") or (name.endswith("+json") and name != "application/stream+json")


def is_any(media_type: str) -> bool:
    """Whether this may be JSON, or anything else."""
    return plain(media_type) in ("*/*", "*", "application/*")


def is_text(media_type: str) -> bool:
    name = plain(media_type)
    return name.startswith("text/") or name in _TEXTS or name.endswith(("+xml", "+yaml"))


def body_form(media_type: str) -> BodyForm:
    """How a body of this type is written."""
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
    """The media type that a body of this one is sent as: a range is none."""
    if "*" not in media_type:
        return media_type.strip()
    form = body_form(media_type)
    return JSON if form == "json" else "text/plain" if form == "text" else OCTETS


_BODY_ORDER: Final[tuple[BodyForm, ...]] = ("json", "form", "multipart", "text", "binary")


def body_rank(media_type: str) -> tuple[int, bool, bool]:
    """What sorts first is taken: JSON itself, other JSON, whatever may be JSON, forms, text, bytes."""
    return _BODY_ORDER.index(body_form(media_type)), is_any(media_type), plain(media_type) != JSON


def reply_form(media_type: str) -> ReplyForm:
    """How a reply of this type is read. For an SSE stream, `events`."""
    name = plain(media_type)
    if name == "text/event-stream":
        return "events"
    if name in _LINES:
        return "lines"
    if is_json(media_type) or is_any(media_type):
        return "json"
    return "text" if is_text(media_type) else "binary"


STREAMS: Final[frozenset[ReplyForm]] = frozenset({"events", "event-data", "lines"})
