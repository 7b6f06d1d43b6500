"""Asks a gateway what it offers. Calls nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...client.outbound.connection import OutboundError
from ..http.faults import UpstreamFault
from .gateway import DOCUMENT, Gateway, address_of
from .model import DaemonImport, Url
from .own_document import read_own_document

LOST: Final[Mapping[str, str]] = {
    "address": "its address is private, which is not allowed",
    "connect": "no connection",
    "connect-timeout": "no connection within the time limit",
    "connections": "too many connections are open",
    "encoding": "its answer is compressed in a way that can't be read",
    "lost": "the connection was lost",
    "protocol": "its answer is no HTTP",
    "tls": "the TLS handshake failed",
    "too-large": "its answer is too large",
    "unresolved": "the host is unknown",
}
"""Why there is no response, for people."""


async def ask_url(url: Url, headers: Mapping[str, str]) -> DaemonImport:
    """What a gateway offers. Raises `ValueError` that says what is wrong."""
    gateway = Gateway(address_of(url), allow_private=url.allow_private)
    try:
        reply = await gateway.document(headers)
    except (OutboundError, UpstreamFault) as exc:
        raise ValueError(LOST[exc.reason]) from exc
    finally:
        await gateway.aclose()
    if reply.status == 404:
        raise ValueError(f"it has no {DOCUMENT}: start it with --http-operations")
    if reply.status in (401, 403):
        raise ValueError(f"it does not accept this caller (HTTP {reply.status})")
    if reply.status != 200:
        raise ValueError(f"it answered HTTP {reply.status}")
    found = read_own_document(reply.body)
    if found is None:
        raise ValueError(f"its {DOCUMENT} is not one that discreet writes: from_openapi takes any")
    return found
