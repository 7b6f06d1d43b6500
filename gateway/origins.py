"""Decides which hosts and origins may reach the gateway. Keeps web pages of strangers out, also those whose name was bound to
a local address after they were loaded (DNS rebinding)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, final
from urllib.parse import urlsplit

from .a2a.routes import CARD_PATHS
from .answers import Answer
from .asgi import Message, Send
from .requests import HEADERS, GatewayRequest
from .resource_metadata import WELL_KNOWN

if TYPE_CHECKING:
    from ..a2a.card import ApiKey


# Cross-Origin Resource Sharing (WHATWG Fetch, section 3.2): which origins' pages may read the answers. Off by default, but for
# what is public.
#
# Answers never allow credentials of the browser's own, such as cookies: a page sends its token in a header.


_PUBLIC: Final = (*(path.removeprefix("/") for path in CARD_PATHS), WELL_KNOWN)


def is_public(path: str) -> bool:
    """Whether pages of any origin may read what is at a path: the public agent card, and what says where to get a token."""
    return path.startswith(_PUBLIC)


METHODS: Final = "GET, HEAD, POST, PUT, DELETE"
_OF_MCP: Final = ("mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id")
_EXPOSED: Final = "etag, mcp-session-id, retry-after, www-authenticate"
"""Answer headers that pages may read beside the few that they always may."""
_MAX_AGE_SECONDS: Final = 600
"""How long a browser may go by a preflight's answer."""


@final
class Cors:
    """The headers of answers, and the answers to preflights. `api_keys` are those of the agent's card."""

    def __init__(self, origins: Origins, api_keys: Iterable[ApiKey]) -> None:
        self._origins = origins
        keys = [key.name.lower() for key in api_keys if key.location == "header"]
        self._accepted = ", ".join(sorted({*HEADERS, *_OF_MCP, "content-type", *keys}))

    @staticmethod
    def is_preflight(request: GatewayRequest) -> bool:
        """Whether a browser asks what a page may send."""
        headers = request.headers
        return request.method == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers

    @staticmethod
    def is_for_all(request: GatewayRequest) -> bool:
        """Whether pages of any origin may read what this asks for, as any program may."""
        return is_public(request.path) and request.method in ("GET", "HEAD", "OPTIONS")

    def preflight(self) -> Answer:
        """Return the headers that tell a page of an allowed origin what it may send."""
        headers = {
            "access-control-allow-methods": METHODS,
            "access-control-allow-headers": self._accepted,
            "access-control-max-age": str(_MAX_AGE_SECONDS),
        }
        return Answer(204, media_type="", headers=headers)

    def adding_headers(self, request: GatewayRequest, send: Send) -> Send:
        """A `send` that lets pages of an allowed origin read the answer."""
        for_all = self.is_for_all(request)
        if not (self._origins.any_allowed or for_all):
            return send
        origin = request.headers.get("origin")
        added: list[tuple[bytes, bytes]] = []
        allowed = "*" if for_all else origin
        if allowed is not None and (for_all or self._origins.allows_cross_origin(allowed)):
            added.append((b"access-control-allow-origin", allowed.encode("latin-1")))
            added.append((b"access-control-expose-headers", _EXPOSED.encode()))

        async def add_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = {name: value for name, value in message["headers"] if name == b"vary"}
                if not for_all:
                    told[b"vary"] = b", ".join((*told.values(), b"origin"))
                others = (each for each in message["headers"] if each[0] != b"vary")
                message["headers"] = [*others, *told.items(), *added]
            await send(message)

        return add_headers


_HOST: Final = re.compile(r"(?:[\w.~!$&'()*+,;=%-]+|\[[0-9A-Fa-f:.]+\])(?::\d*)?", re.ASCII)

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")


@final
class Origins:
    """`hosts` are the names under which clients may ask for the gateway, None for any; a name `*.example.org` stands for
    all below it. `allowed` are the origins of web pages that may call it (`https://app.example`), `*` for all.
    """

    def __init__(self, hosts: Collection[str] | None, allowed: Sequence[str]) -> None:
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        self._suffixes = tuple(host[1:].lower() for host in hosts or () if host.startswith("*."))
        self._allowed = frozenset(origin.rstrip("/").lower() for origin in allowed)
        self.any_allowed: Final = bool(allowed)
        """Whether pages of any other origin may call."""

    def admits_host(self, header: str | None) -> bool:
        """Whether the header `Host` names this gateway."""
        name = host_name(header) if header else None
        if self._hosts is None:
            return not header or name is not None
        return name is not None and (name in self._hosts or name.endswith(self._suffixes))

    def admits_origin(self, header: str | None, host: str | None) -> bool:
        """Whether a page of this origin may call. Programs send none. A page that the gateway itself serves may."""
        if header is None or "*" in self._allowed or header.lower() in self._allowed:
            return True
        try:
            parts = urlsplit(header)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and bool(host) and parts.netloc.lower() == (host or "").lower()

    def allows_cross_origin(self, header: str) -> bool:
        """Whether pages of this origin may read the answers."""
        return "*" in self._allowed or header.lower() in self._allowed


def host_name(header: str) -> str | None:
    """The name or address in a `Host` header, without its port and brackets; None for what is none (RFC 9112, section 3.2)."""
    return host_name_of(f"//{header}") if _HOST.fullmatch(header) else None


def host_name_of(url: str) -> str | None:
    """The name or address in a URL; None for what is none."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def is_origin(text: str) -> bool:
    """Whether browsers may send this as an origin (RFC 6454, section 6.1), but for a slash behind it."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc) and not parts.path.strip("/") + parts.query


def is_host_name(text: str) -> bool:
    """Whether it is a name or an address alone, as `host_name` gives it; an IPv6 address may have its brackets."""
    return "/" not in text and text.count(":") != 1 and "]:" not in text
