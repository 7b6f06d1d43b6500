"""Compresses whole responses with gzip for clients that take it (RFC 9110, section 12.5.3). Never events."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from ...lazy import anyio

if TYPE_CHECKING:
    from ..requests import GatewayRequest

SMALLEST: Final = 1024
"""Bytes. Smaller bodies gain nothing."""

IN_A_THREAD: Final = 128 * 1024
"""Bytes. What takes the loop longer than about a millisecond is compressed in a thread."""

_LEVEL: Final = 5
_GZIP: Final = 16 + zlib.MAX_WBITS
"""Tells zlib to write the format of gzip (RFC 1952)."""


async def compressed(request: GatewayRequest, response: Response) -> Response:
    """The response, or one with the same meaning and a shorter body."""
    body = bytes(response.body)
    if len(body) < SMALLEST:
        return response
    if not takes_gzip(request.headers.get("accept-encoding", "")):
        response.headers.add_vary_header("accept-encoding")
        return response
    shorter = _gzip(body) if len(body) < IN_A_THREAD else await anyio.to_thread.run_sync(_gzip, body)
    return gzipped_before(request, response, shorter)


def gzipped_before(request: GatewayRequest, response: Response, shorter: bytes) -> Response:
    """The same where its body was compressed before."""
    response.headers.add_vary_header("accept-encoding")
    if takes_gzip(request.headers.get("accept-encoding", "")):
        response.body = shorter
        response.headers["content-encoding"] = "gzip"
        response.headers["content-length"] = str(len(shorter))
    return response


def takes_gzip(header: str) -> bool:
    """Whether a client that sends this `Accept-Encoding` takes gzip."""
    accepted: dict[str, bool] = {}
    for each in header.split(","):
        coding, *params = (part.strip().lower() for part in each.split(";"))
        accepted[coding] = not any(param.replace(" ", "").rstrip("0") in ("q=", "q=0.") for param in params)
    return accepted.get("gzip", accepted.get("x-gzip", accepted.get("*", False)))


def _gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return compressor.compress(body) + compressor.flush()
