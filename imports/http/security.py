"""Which credentials a request has, and where they stand in it. Sends nothing and logs nothing."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from ...errors.nearest import nearest_hint
from .faults import UpstreamFault
from .model import SecurityScheme
from .styles import is_token, percent

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
    """What the credentials add to a request. Names of headers are in lower case, the pair of the query is encoded."""

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
    """What the credentials add. Raises `UpstreamFault` for one that is not there or that can't be sent."""
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
