"""Builds the HTTP request for a call: path, query, headers, cookies, body and credentials. Pure but for the boundary of multipart
bodies.

No value changes the path: all of it is percent-encoded, and a segment that servers would resolve or drop is refused. Values are
written as the styles of OpenAPI say ("Style Values" and "Style Examples" of the specification, RFC 6570). What a strict reader
would take for another value is refused. null, an empty array and an empty object are what RFC 6570 calls undefined; members of
arrays and objects that are null are left out.
"""

from __future__ import annotations

import binascii
import json
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec

from ...client.http.wire import OWN_HEADERS, is_field_value, is_token
from ...errors.nearest import nearest_hint
from .model import (
    BODY,
    JSON,
    OCTETS,
    Body,
    HttpOperation,
    Location,
    Param,
    SecurityScheme,
    Serialization,
    UpstreamFault,
    invalid_input,
    is_json,
    is_text,
)

Encode: TypeAlias = Callable[[str], str]

_INTEGRAL_BELOW: Final = 1e15
"""Up to here a float without a fraction is written as an integer, which it equals in JSON."""

_RESERVED: Final = "!$'()*,/:;=?@"
"""Characters that `allowReserved` leaves as they are in a query: without `#`, `[` and `]`, which no query may hold, and `&` and
`+`, which mean something else there."""

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
    """Return the text of a param in the path. Every value is percent-encoded, whatever `allowReserved` says."""
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


_is_cookie_value: Final = re.compile(
    r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e,]*"
).fullmatch  # RFC 6265, and the comma


def header_value(text: str) -> str:
    """The text, if it can be the value of a header."""
    if is_field_value(text) is None:
        raise Unwritable("string of printable ASCII characters that neither begins nor ends with a space")
    return text


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
    if not text or "," in text or is_field_value(text) is None:
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


T = TypeVar("T")

MAX_TARGET_BYTES: Final = 32_768
"""Path and query. Few servers take more than 8,192 bytes; what they refuse is theirs to say."""

_TEMPLATE: Final = re.compile(r"\{([^{}]*)\}")
_PATH_SAFE: Final = "!$%&'()*+,/:;=@"
_IGNORED_BODY_METHODS: Final = frozenset({"GET", "HEAD", "DELETE", "OPTIONS", "TRACE"})
"""Requests of these have no `Content-Length` where they have no body."""

_OWN_HEADERS: Final = OWN_HEADERS | {"accept", "proxy-authorization"}
"""Headers that belong to the connection, or to this module."""

_EMPTY_PATH: Final = "value that is not empty and has no segment . or .."


class HttpRequest(msgspec.Struct, frozen=True):
    """`target` is the path and the query. `headers` are all but `Host`."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""


def build_request(
    operation: HttpOperation,
    arguments: Mapping[str, Any],
    *,
    base_path: str,
    authorization: Authorization,
    headers: Mapping[str, str],
) -> HttpRequest:
    """The request. `headers` are those of every request, in lower case; they and the credentials come before the arguments.

    Raises `FailureError(InvalidParams)` for a value that can't be sent as the document says.
    """
    given: dict[Location, list[tuple[Param, Any]]] = {}
    for param in operation.params:
        if param.name in arguments:
            given.setdefault(param.location, []).append((param, arguments[param.name]))
    path = base_path + _path(operation, dict_of(given.get("path", ())))
    query = _query(given, authorization)
    separator = "&" if "?" in path else "?"
    target = f"{path}{separator}{query}" if query else path
    if len(target) > MAX_TARGET_BYTES:
        raise invalid_input("$", f"path and query of at most {MAX_TARGET_BYTES} bytes", arguments)
    sent = _headers(given.get("header", ()), authorization)
    cookies = _cookies(given.get("cookie", ()), authorization)
    if cookies:
        sent["cookie"] = "; ".join(cookies)
    body = _body(operation, arguments)
    if body is not None:
        sent["content-type"] = body.content_type
    if body is not None or operation.method not in _IGNORED_BODY_METHODS:
        sent["content-length"] = str(0 if body is None else len(body.data))
    return HttpRequest(
        operation.method,
        target or "/",
        tuple({**sent, **headers, **authorization.headers}.items()),
        b"" if body is None else body.data,
    )


def dict_of(given: Any) -> dict[str, tuple[Param, Any]]:  # Any: pairs of params and JSON values
    """Params by their names in the request."""
    return {param.wire_name: (param, value) for param, value in given}


def _path(operation: HttpOperation, given: Mapping[str, tuple[Param, Any]]) -> str:
    """The path, and the query that the document fixes. A fragment tells operations of one path apart, and is not sent."""
    sent = operation.path.partition("#")[0]
    path, question, fixed = f"/{sent.removeprefix('/')}".partition("?")
    segments = [_segment(segment, given) for segment in path.split("/")]
    return "/".join(segments) + (f"?{quote(fixed, safe=_PATH_SAFE)}" if question else "")


def _segment(template: str, given: Mapping[str, tuple[Param, Any]]) -> str:
    """A segment of the path. One that servers resolve (RFC 3986, section 5.2.4), also after decoding it, is refused."""
    parts = _TEMPLATE.split(template)
    if len(parts) == 1:
        return quote(template, safe=_PATH_SAFE)
    written = [quote(part, safe=_PATH_SAFE) if index % 2 == 0 else "" for index, part in enumerate(parts)]
    blamed: tuple[Param, Any] | None = None
    for index in range(1, len(parts), 2):
        found = given.get(parts[index])
        if found is None:
            written[index] = quote(f"{{{parts[index]}}}", safe="")
            continue
        param, value = blamed = found
        written[index] = _written(param, value, _in_path)
    text = "".join(written)
    resolved = re.split(r"/|\\|%2F|%5C", text, flags=re.IGNORECASE)
    if blamed is not None and (not text or any(piece in (".", "..") for piece in resolved)):
        raise invalid_input(blamed[0].name, _EMPTY_PATH, blamed[1])
    return text


def _in_path(param: Param, value: Any) -> str:
    if param.serialization.content_type:
        return percent(_content(param, value))
    return path_text(param.wire_name, value, param.serialization)


def _query(given: Mapping[Location, list[tuple[Param, Any]]], authorization: Authorization) -> str:
    pairs: list[str] = []
    for param, value in given.get("querystring", ()):
        pairs += _written(param, value, _whole_query)
    for param, value in given.get("query", ()):
        pairs += _written(param, value, _in_query)
    names = {percent(name) for name in authorization.query}
    pairs = [
        pair for pair in pairs if pair.partition("=")[0] not in names
    ]  # no value of a caller stands in for a credential
    return "&".join([*pairs, *authorization.query.values()])


def _in_query(param: Param, value: Any) -> list[str]:
    if param.serialization.content_type:
        return [f"{percent(param.wire_name)}={percent(_content(param, value))}"]
    return query_pairs(param.wire_name, value, param.serialization, required=param.required)


def _whole_query(param: Param, value: Any) -> list[str]:
    """The query in one (OpenAPI 3.2, `in: querystring`): an object as a form, or its text."""
    content_type = param.serialization.content_type
    if isinstance(value, dict) and not is_json(content_type):
        return [
            f"{percent(name)}={percent(scalar(item))}"
            for name, items in value.items()
            for item in (items if isinstance(items, list) else [items])
            if item is not None
        ]
    return [percent(_content(param, value))] if not is_undefined(value) else []


def _headers(given: Any, authorization: Authorization) -> dict[str, str]:
    headers: dict[str, str] = {}
    for param, value in given:
        name = param.wire_name.lower()
        if name in authorization.headers or (is_undefined(value) and not param.required):
            continue
        if name in _OWN_HEADERS or not is_token(name):
            raise invalid_input(param.name, "no value: this header belongs to the connection", value)
        headers[name] = _written(param, value, _in_header)
    return headers


def _in_header(param: Param, value: Any) -> str:
    if param.serialization.content_type:
        return header_value(_content(param, value, escaped=True))
    return header_text("" if value is None else value, explode=param.serialization.explode)


def _cookies(given: Any, authorization: Authorization) -> list[str]:
    cookies: list[str] = []
    for param, value in given:
        if not is_undefined(value):
            cookies += _written(param, value, _in_cookie)
    return [
        *(cookie for cookie in cookies if cookie.partition("=")[0] not in authorization.cookies),
        *authorization.cookies.values(),
    ]


def _in_cookie(param: Param, value: Any) -> list[str]:
    if not is_token(param.wire_name):
        raise Unwritable("no value: the name is none of a cookie")
    if param.serialization.content_type:
        return [f"{param.wire_name}={percent(_content(param, value))}"]
    return cookie_pairs(param.wire_name, value, param.serialization)


def _body(operation: HttpOperation, arguments: Mapping[str, Any]) -> _WrittenBody | None:
    if operation.body is None:
        return None
    body = operation.body
    if operation.content_type in arguments:
        body = operation.bodies.get(arguments[operation.content_type], body)
    return _written_body(body, arguments[BODY]) if BODY in arguments else None


def _content(param: Param, value: Any, *, escaped: bool = False) -> str:
    """A value as its media type says: JSON, or a text as it is."""
    if isinstance(value, str) and not is_json(param.serialization.content_type):
        return value
    return json.dumps(value, separators=(",", ":")) if escaped else msgspec.json.encode(value).decode()


def _written(param: Param, value: Any, write: Callable[[Param, Any], T]) -> T:
    try:
        return write(param, value)
    except Unwritable as exc:
        raise invalid_input(param.name, exc.expected, value) from None


# -- bodies ----------------------------------------------------------------------------------------------------


class _WrittenBody(msgspec.Struct, frozen=True):
    """The bytes, and the value of the header `Content-Type`."""

    data: bytes
    content_type: str


def _written_body(body: Body, value: Any) -> _WrittenBody:  # Any: the JSON value of the body
    """The body of a request. Raises `FailureError(InvalidParams)` for what can't be written in its form."""
    param = BODY
    match body.form:
        case "json":
            return _WrittenBody(msgspec.json.encode(value), _concrete(body.content_type, JSON))
        case "form":
            pairs = [
                pair for name, item in _members(param, value) for pair in _form_pairs(name, item, body.parts.get(name))
            ]
            return _WrittenBody(
                "&".join(pairs).encode(), _concrete(body.content_type, "application/x-www-form-urlencoded")
            )
        case "multipart":
            return _multipart(param, body, _members(param, value))
        case "text":
            content_type = _concrete(body.content_type, "text/plain")
            return _WrittenBody(_text(param, value).encode(), _with_charset(content_type))
        case "binary":
            return _WrittenBody(_from_base64(param, value), _concrete(body.content_type, OCTETS))


def _from_base64(param: str, value: Any) -> bytes:  # Any: a JSON value
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
    """Return the values of a member of a form, each by itself: an array's items have the same name (RFC 7578, section 4.3)."""
    return [item for item in (value if isinstance(value, list) else [value]) if item is not None]


def _multipart(param: str, body: Body, members: list[tuple[str, Any]]) -> _WrittenBody:
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
    return _WrittenBody(b"".join(pieces), f"{kind.partition(';')[0].strip()}; boundary={boundary}")


def _part(param: str, name: str, value: Any, how: Serialization | None) -> list[bytes]:
    said = "" if how is None else how.content_type
    complex_value = isinstance(value, list | dict)
    content_type = _concrete(said.partition(",")[0].strip(), OCTETS) if said else JSON if complex_value else ""
    filename = ""
    if is_json(content_type):
        data = msgspec.json.encode(value)
    elif complex_value or not content_type or is_text(content_type):
        data = scalar(value).encode()
    else:
        data = _from_base64(param, value)
        filename = f'; filename="{_quoted(name)}"'
    head = f'Content-Disposition: form-data; name="{_quoted(name)}"{filename}\r\n'
    if content_type:
        head += f"Content-Type: {content_type}\r\n"
    return [head.encode(), b"\r\n", data]


def _quoted(name: str) -> str:
    """As browsers write names of parts (WHATWG HTML, "multipart form data")."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _concrete(content_type: str, default: str) -> str:
    return default if not content_type or "*" in content_type else content_type


def _with_charset(content_type: str) -> str:
    named = "charset" in content_type.lower()
    return content_type if named or not content_type.startswith("text/") else f"{content_type}; charset=utf-8"


# -- credentials -----------------------------------------------------------------------------------------------

Credentials: TypeAlias = Mapping[str, str] | str
"""The names of credentials by the names of security schemes, or one for all schemes."""

Alternatives: TypeAlias = tuple[tuple[str, ...], ...]
"""The security schemes of an operation, as the document has them."""

Chosen: TypeAlias = tuple[tuple[SecurityScheme, str], ...]
"""Schemes of one alternative, each with the name of its credential."""

_NOT_FOR_KEYS: Final = frozenset(
    {
        "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "cookie", "expect", "host",
        "keep-alive", "te", "traceparent", "tracestate", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip
"""Headers that say something of the request itself."""
_is_secret: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?").fullmatch
_is_in_cookie: Final = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+").fullmatch  # RFC 6265, section 4.1.1


class Authorization(msgspec.Struct, frozen=True):
    """The parts of a request that the credentials add. Names of headers are in lower case, the pair of the query is encoded."""

    headers: Mapping[str, str] = {}
    query: Mapping[str, str] = {}
    cookies: Mapping[str, str] = {}


def check_schemes(schemes: Mapping[str, SecurityScheme], given: Credentials) -> None:
    """Raises `ValueError` where credentials are given for a scheme that the document does not have."""
    for name in () if isinstance(given, str) else given:
        if name not in schemes:
            raise ValueError(f"credentials: the document has no security scheme {name!r}{nearest_hint(name, schemes)}")


def choose_security(security: Alternatives, schemes: Mapping[str, SecurityScheme], given: Credentials) -> Chosen | None:
    """The first alternative for which there are credentials; one without any only if there is no other. None where there is none:
    then the call goes without credentials, and the server says what it thinks of that.
    """
    for alternative in security:
        chosen = _with_credentials(alternative, schemes, given)
        if chosen:
            return chosen
    return () if not security or () in security else None


def authorize(chosen: Chosen, values: Mapping[str, str]) -> Authorization:
    """Return the parts that the credentials add. Raises `UpstreamFault` for one that is missing or can't be sent."""
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    cookies: dict[str, str] = {}
    for scheme, name in chosen:
        value = values.get(name, "")
        if scheme.kind == "basic":
            headers["authorization"] = f"Basic {_basic(value)}"
        elif _is_secret(value) is None:
            raise UpstreamFault("credential")
        elif scheme.kind == "bearer":
            headers["authorization"] = f"Bearer {value}"
        elif scheme.location == "query":
            query[scheme.name] = f"{percent(scheme.name)}={percent(value)}"
        elif scheme.location == "cookie":
            if _is_in_cookie(value) is None:
                raise UpstreamFault("credential")
            cookies[scheme.name] = f"{scheme.name}={value}"
        else:
            headers[scheme.name.lower()] = value
    return Authorization(headers, query, cookies)


def _with_credentials(
    alternative: tuple[str, ...], schemes: Mapping[str, SecurityScheme], given: Credentials
) -> Chosen:
    """The schemes of an alternative with their credentials; empty where one of them has none."""
    chosen: list[tuple[SecurityScheme, str]] = []
    for name in alternative:
        credential = given if isinstance(given, str) else given.get(name, "")
        if not credential or _kind(name, schemes) == "other":
            return ()
        chosen.append((schemes[name], credential))
    return tuple(chosen)


def _kind(name: str, schemes: Mapping[str, SecurityScheme]) -> str:
    """That of the scheme; `other` for a key in a place where none can stand."""
    scheme = schemes.get(name)
    if scheme is None:
        return "other"
    if scheme.kind == "api-key" and scheme.location != "query":
        header = scheme.location == "header"
        if not is_token(scheme.name) or (header and scheme.name.lower() in _NOT_FOR_KEYS):
            return "other"
    return scheme.kind


def _basic(value: str) -> str:
    from ...errors.redaction import register  # late: only few imports need it

    if _is_secret(value) is None:
        raise UpstreamFault("credential")
    value = value if ":" in value else f"{value}:"  # a key alone is a user without a password, as with curl -u
    encoded = b64encode(value.encode()).decode()
    register(encoded)
    register(value.partition(":")[2])
    return encoded
