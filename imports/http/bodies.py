"""Writes the body of a request: JSON, forms, multipart, text, bytes. Pure but for the boundary, which is random."""

from __future__ import annotations

import binascii
import os
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from .faults import invalid_input
from .model import Body, Serialization
from .styles import percent, query_pairs, scalar

BINARY: Final = "application/octet-stream"
JSON: Final = "application/json"

_TEXTS: Final = frozenset({"application/xml", "application/yaml", "application/javascript", "application/x-yaml"})
_PLAIN: Final = Serialization()


class WrittenBody(msgspec.Struct, frozen=True):
    """The bytes, and the value of the header `Content-Type`."""

    data: bytes
    content_type: str


def write_body(body: Body, value: Any) -> WrittenBody:  # Any: the JSON value of the body
    """The body of a request. Raises `FailureError(InvalidParams)` for what can't be written in its form."""
    param = body.member or "$"
    match body.form:
        case "json":
            return WrittenBody(msgspec.json.encode(value), _concrete(body.content_type, JSON))
        case "form":
            pairs = [
                pair for name, item in _members(param, value) for pair in _form_pairs(name, item, body.parts.get(name))
            ]
            return WrittenBody(
                "&".join(pairs).encode(), _concrete(body.content_type, "application/x-www-form-urlencoded")
            )
        case "multipart":
            return _multipart(param, body, _members(param, value))
        case "text":
            content_type = _concrete(body.content_type, "text/plain")
            return WrittenBody(_text(param, value).encode(), _with_charset(content_type))
        case "binary":
            return WrittenBody(from_base64(param, value), _concrete(body.content_type, BINARY))


def is_json(content_type: str) -> bool:
    """Whether a media type is JSON (RFC 6838, section 4.2.8, for `+json`)."""
    name = content_type.partition(";")[0].strip().lower()
    return name in (JSON, "text/json") or name.endswith("+json")


def from_base64(param: str, value: Any) -> bytes:  # Any: a JSON value
    """The bytes of a string in base64. Raises `FailureError(InvalidParams)`."""
    try:
        return b64decode(_text(param, value), validate=True)
    except (binascii.Error, ValueError):
        raise invalid_input(param, "string in base64", value) from None


def _text(param: str, value: Any) -> str:
    if not isinstance(value, str):
        raise invalid_input(param, "string", value)
    return value


def _members(param: str, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise invalid_input(param, "object", value)
    return list(value.items())


def _form_pairs(name: str, value: Any, how: Serialization | None) -> list[str]:
    """The pairs for a member of a form: in a style where the document names one, else as its media type, objects as JSON."""
    if how is not None and not how.content_type:
        return query_pairs(name, value, how, required=False)
    as_json = how is not None and is_json(how.content_type)
    texts = (msgspec.json.encode(item).decode() if as_json else scalar(item) for item in _items(value))
    return [f"{percent(name)}={percent(text)}" for text in texts]


def _items(value: Any) -> list[Any]:
    """What a member of a form is, each by itself: an array's items have the same name (RFC 7578, section 4.3)."""
    return [item for item in (value if isinstance(value, list) else [value]) if item is not None]


def _multipart(param: str, body: Body, members: list[tuple[str, Any]]) -> WrittenBody:
    """RFC 7578. The boundary is random, so that no value can hold it."""
    boundary = os.urandom(16).hex()
    pieces: list[bytes] = []
    for name, value in members:
        for item in _items(value):
            part = _part(f"{param}.{name}", name, item, body.parts.get(name))
            pieces += [b"--", boundary.encode(), b"\r\n", *part, b"\r\n"]
    pieces += [b"--", boundary.encode(), b"--\r\n"]
    kind = (
        body.content_type
        if body.content_type.startswith("multipart/") and "*" not in body.content_type
        else "multipart/form-data"
    )
    return WrittenBody(b"".join(pieces), f"{kind.partition(';')[0].strip()}; boundary={boundary}")


def _part(param: str, name: str, value: Any, how: Serialization | None) -> list[bytes]:
    said = "" if how is None else how.content_type
    complex_value = isinstance(value, list | dict)
    content_type = _concrete(said.partition(",")[0].strip(), BINARY) if said else JSON if complex_value else ""
    filename = ""
    if is_json(content_type):
        data = msgspec.json.encode(value)
    elif complex_value or not content_type or _is_text(content_type):
        data = scalar(value).encode()
    else:
        data = from_base64(param, value)
        filename = f'; filename="{_quoted(name)}"'
    head = f'Content-Disposition: form-data; name="{_quoted(name)}"{filename}\r\n'
    if content_type:
        head += f"Content-Type: {content_type}\r\n"
    return [head.encode(), b"\r\n", data]


def _is_text(content_type: str) -> bool:
    name = content_type.partition(";")[0].strip().lower()
    return name.startswith("text/") or name.endswith("+xml") or name in _TEXTS


def _quoted(name: str) -> str:
    """As browsers write names of parts (WHATWG HTML, "multipart form data")."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _concrete(content_type: str, default: str) -> str:
    return default if not content_type or "*" in content_type else content_type


def _with_charset(content_type: str) -> str:
    named = "charset" in content_type.lower()
    return content_type if named or not content_type.startswith("text/") else f"{content_type}; charset=utf-8"


def by_member(
    body: Body, arguments: Mapping[str, Any], params: frozenset[str]
) -> Any:  # Any: the JSON value of the body
    """The value of the body among the arguments; UNSET where there is none."""
    if body.member:
        return arguments.get(body.member, msgspec.UNSET)
    rest = {name: value for name, value in arguments.items() if name not in params}
    return rest if rest or body.required else msgspec.UNSET
