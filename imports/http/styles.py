"""Writes values as the styles of OpenAPI say ("Style Values" and "Style Examples" of the specification, RFC 6570). Pure.

What a strict reader would take for another value is refused: `Unwritable` says what was expected. null, an empty array and an
empty object are what RFC 6570 calls undefined; members of arrays and objects that are null are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import msgspec

from .model import Serialization

Encode: TypeAlias = Callable[[str], str]

_INTEGRAL_BELOW: Final = 1e15
"""Up to here a float without a fraction is written as an integer, which it equals in JSON."""

_RESERVED: Final = "!$'()*,/:;=?@"
"""What `allowReserved` leaves as it is in a query: without `#`, `[` and `]`, which no query may hold, and `&` and `+`, which mean
something else there."""

_TRIPLE: Final = re.compile(r"(%[0-9A-Fa-f]{2})")


class Unwritable(Exception):
    """The style can't express the value. `expected` says what it can."""

    def __init__(self, expected: str) -> None:
        super().__init__(expected)
        self.expected = expected


def percent(text: str) -> str:
    """All but the unreserved characters (RFC 3986, section 2.3) are encoded."""
    return quote(text, safe="")


def reserved(text: str) -> str:
    """Reserved expansion (RFC 6570, section 3.2.3): percent-encoded triples, too, stay as they are."""
    return "".join(part if index % 2 else quote(part, safe=_RESERVED) for index, part in enumerate(_TRIPLE.split(text)))


def scalar(value: Any) -> str:  # Any, here and below: a JSON value
    """A value as text; what is no scalar as JSON."""
    match value:
        case str():
            return value
        case True:
            return "true"
        case False:
            return "false"
        case int():
            return str(value)
        case float() if value.is_integer() and abs(value) < _INTEGRAL_BELOW:
            return str(int(value))
        case _:
            return msgspec.json.encode(value).decode()


def is_undefined(value: Any) -> bool:
    """Whether there is nothing to write."""
    return value is None or value == [] or value == {}


def path_text(name: str, value: Any, how: Serialization) -> str:
    """What stands in the path for a param. Every value is percent-encoded, whatever `allowReserved` says."""
    match how.style:
        case "matrix":
            return _matrix(percent(name), value, how.explode)
        case "label":
            return "." + _listed(value, percent, "." if how.explode else ",", "=" if how.explode else ",")
        case _:
            return _listed(value, percent, ",", "=" if how.explode else ",")


def query_pairs(name: str, value: Any, how: Serialization, *, required: bool) -> list[str]:
    """The pairs `name=value` for a query or a form, encoded. Empty where there is nothing to write, unless it is required."""
    if is_undefined(value):
        return [f"{percent(name)}="] if required else []
    encode = reserved if how.allow_reserved else percent
    match how.style:
        case "deepObject":
            return [f"{percent(path)}={encode(text)}" for path, text in _deep(name, value)]
        case "spaceDelimited" if not how.explode:
            return _delimited(name, value, " ", encode)
        case "pipeDelimited" if not how.explode:
            return _delimited(name, value, "|", encode)
        case _:
            return _form(name, value, explode=how.explode, encode=encode)


def header_text(value: Any, *, explode: bool) -> str:
    """The value of a header, in the style `simple`. Nothing is encoded in headers, so nothing may need it."""
    if not isinstance(value, list | dict):
        return header_value(scalar(value))
    if explode and isinstance(value, dict) and any("=" in key for key in value):
        raise Unwritable("object whose keys have no =")
    return _listed(value, _list_item, ",", "=" if explode else ",")


def cookie_pairs(name: str, value: Any, how: Serialization) -> list[str]:
    """The pairs for the header `Cookie`. The style `form` percent-encodes them, `cookie` does not."""
    if how.style != "cookie":
        return _form(name, value, explode=how.explode, encode=percent)
    if not isinstance(value, list | dict):
        return [f"{name}={_cookie_octets(scalar(value))}"]
    if not how.explode:
        return [f"{name}={_listed(value, _cookie_item, ',', ',')}"]
    if isinstance(value, list):
        return [f"{name}={_cookie_octets(scalar(item))}" for item in value if item is not None]
    return [f"{_cookie_name(key)}={_cookie_octets(scalar(item))}" for key, item in value.items() if item is not None]


_is_value: Final = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?").fullmatch  # RFC 9110, section 5.5
_is_cookie_value: Final = re.compile(
    r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e,]*"
).fullmatch  # RFC 6265, and the comma
_is_token: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch  # RFC 9110, section 5.6.2


def header_value(text: str) -> str:
    """The text, if it can be the value of a header."""
    if _is_value(text) is None:
        raise Unwritable("string of printable ASCII characters that neither begins nor ends with a space")
    return text


def is_token(text: str) -> bool:
    """Whether it can be the name of a header or a cookie."""
    return _is_token(text) is not None


def _listed(value: Any, encode: Encode, between: str, assign: str) -> str:
    """A scalar, the items of an array, or the members of an object; `assign` stands between a key and its value."""
    match value:
        case None:
            return ""
        case list():
            return between.join(encode(scalar(item)) for item in value if item is not None)
        case dict():
            members = ((key, item) for key, item in value.items() if item is not None)
            return between.join(f"{encode(key)}{assign}{encode(scalar(item))}" for key, item in members)
        case _:
            return encode(scalar(value))


def _matrix(name: str, value: Any, explode: bool) -> str:
    if not explode or not isinstance(value, list | dict) or not value:
        text = _listed(value, percent, ",", ",")
        return f";{name}={text}" if text else f";{name}"
    if isinstance(value, dict):
        return ";" + _listed(value, percent, ";", "=")
    return "".join(_matrix(name, item, False) for item in value if item is not None)


def _form(name: str, value: Any, *, explode: bool, encode: Encode) -> list[str]:
    match value:
        case list() if explode:
            return [f"{percent(name)}={encode(scalar(item))}" for item in value if item is not None]
        case dict() if explode:
            return [f"{percent(key)}={encode(scalar(item))}" for key, item in value.items() if item is not None]
        case list() | dict():
            within = percent if encode is percent else _reserved_item
            return [f"{percent(name)}={_listed(value, within, ',', ',')}"]
        case _:
            return [f"{percent(name)}={encode(scalar(value))}"]


def _reserved_item(text: str) -> str:
    return reserved(text).replace(",", "%2C")


def _delimited(name: str, value: Any, delimiter: str, encode: Encode) -> list[str]:
    def item(text: str) -> str:
        if delimiter in text:
            raise Unwritable("strings without spaces" if delimiter == " " else "strings without |")
        return encode(text)

    between = percent(delimiter)
    return [f"{percent(name)}={_listed(value, item, between, between)}"]


def _deep(path: str, value: Any) -> list[tuple[str, str]]:
    """The paths to all scalars. The specification leaves open what is below the first level; this is what most servers read."""
    match value:
        case dict():
            return [pair for key, item in value.items() for pair in _deep(f"{path}[{key}]", item)]
        case list():
            return [pair for index, item in enumerate(value) for pair in _deep(f"{path}[{index}]", item)]
        case None:
            return []
        case _:
            return [(path, scalar(value))]


def _list_item(text: str) -> str:
    if not text or "," in text or _is_value(text) is None:
        raise Unwritable("strings of printable ASCII characters without commas and outer spaces")
    return text


def _cookie_octets(text: str) -> str:
    if _is_cookie_value(text) is None or "," in text:
        raise Unwritable(
            "string of printable ASCII characters without spaces, commas, semicolons, quotes and backslashes"
        )
    return text


def _cookie_item(text: str) -> str:
    return _cookie_octets(text)


def _cookie_name(text: str) -> str:
    if not is_token(text):
        raise Unwritable("object whose keys are names of cookies")
    return text
