"""Tells clients what they have already (RFC 9110, sections 8.8.3 and 13.1.2). Tags are weak, since a body may be compressed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.requests import Request

REVALIDATED: Final[Mapping[str, str]] = {"cache-control": "private, no-cache"}
"""What is kept belongs to its caller, and is asked for anew each time."""


def etag_of(body: bytes) -> str:
    """The tag of an answer with this body."""
    return f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'


def with_etag(request: Request, response: Response, etag: str = "") -> Response:
    """The response with its tag; in its place 304 where the client has what it would say."""
    etag = etag or etag_of(bytes(response.body))
    headers = {"etag": etag, **REVALIDATED}
    if _knows(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    response.headers.update(headers)
    return response


def _knows(header: str | None, etag: str) -> bool:
    if header is None:
        return False
    opaque = etag.removeprefix("W/")
    return header.strip() == "*" or opaque in (each.strip().removeprefix("W/") for each in header.split(","))
