"""Tells clients what they have already (RFC 9110, sections 8.8.3 and 13.1). Tags are weak, since a body may be compressed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from email.utils import formatdate, parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

if TYPE_CHECKING:
    from ..requests import GatewayRequest

REVALIDATED: Final[Mapping[str, str]] = {"cache-control": "private, no-cache"}
"""What is kept belongs to its caller, and is asked for anew each time."""


def etag_of(body: bytes) -> str:
    """The tag of an answer with this body."""
    return f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'


def with_etag(
    request: GatewayRequest,
    response: Response,
    etag: str = "",
    *,
    caching: Mapping[str, str] = REVALIDATED,
    modified: int | None = None,
) -> Response:
    """The response with its tag; in its place 304 where the client has what it would say. `caching` are the headers that say who
    may keep it; `modified` is when it changed last, in seconds since 1970.
    """
    etag = etag or etag_of(bytes(response.body))
    headers = {"etag": etag, **caching}
    if modified is not None:
        headers["last-modified"] = formatdate(modified, usegmt=True)
    if _knows(request, etag, modified):
        return Response(status_code=304, headers=headers)
    response.headers.update(headers)
    return response


def _knows(request: GatewayRequest, etag: str, modified: int | None) -> bool:
    """A tag that the client names counts more than a time (section 13.2.2)."""
    tags = request.headers.get("if-none-match")
    if tags is not None:
        opaque = etag.removeprefix("W/")
        return tags.strip() == "*" or opaque in (each.strip().removeprefix("W/") for each in tags.split(","))
    since = request.headers.get("if-modified-since")
    if since is None or modified is None:
        return False
    try:
        return parsedate_to_datetime(since).timestamp() >= modified
    except ValueError:
        return False
