"""What a response means by the document: which reply it is, and its JSON. Reads from no connection."""

from __future__ import annotations

from base64 import b64encode
from typing import Final

import msgspec
from msgspec import Raw

from ...daemon.rpc.envelope import json_failure
from .faults import UpstreamFault
from .media_types import STREAMS
from .model import HttpOperation, Reply, ReplyForm

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
    """The same text on one line, if it is JSON in UTF-8. Numbers keep all their digits, and keys may be there twice: the text is
    the upstream's, and what it means is checked by the schema. Raises `UpstreamFault`."""
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
