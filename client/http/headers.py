"""Makes the headers of a request from its service params (A2A 1.0 section 9.2). Reads none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ..messages import OutgoingRequest
from .a2a import version_of

A2A_VERSION: Final = "a2a-version"
AUTHORIZATION: Final = "authorization"

_is_name: Final = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+").fullmatch  # RFC 9110, section 5.6.2, in lower case
_is_value: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?").fullmatch

_OWN: Final = frozenset(
    "accept accept-encoding connection content-encoding content-length content-type expect host keep-alive"
    " proxy-connection te trailer transfer-encoding upgrade".split()
)
"""Headers that belong to the transport."""

JSON: Final = "application/json"
EVENT_STREAM: Final = "text/event-stream"


def headers_of(message: OutgoingRequest, *, accept: str) -> dict[str, str]:
    """The headers of a request. Raises `ValueError` for a service param that can't be one; its text holds no value."""
    return {
        "content-type": JSON,
        "accept": accept,
        "accept-encoding": "identity",  # what is small when it comes must not grow in memory
        **_version(message.method),
        **checked_headers(message.service_params or {}),
    }


def checked_headers(service_params: Mapping[str, str]) -> dict[str, str]:
    """Service params as headers. Raises `ValueError`."""
    headers: dict[str, str] = {}
    for given, value in service_params.items():
        name = given.lower()
        if _is_name(name) is None or name in _OWN:
            raise ValueError(f"service_params: {given!r} can't be an HTTP header of a request")
        if value and _is_value(value) is None:
            raise ValueError(f"service_params: the value of {given!r} must be of printable ASCII characters")
        headers[name] = value
    return headers


def _version(method: str) -> dict[str, str]:
    version = version_of(method)
    return {} if version is None else {A2A_VERSION: version}
