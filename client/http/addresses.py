"""Reads the URL of a server. Connects to nothing, and repeats no password."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

import msgspec

UNIX: Final = "unix:"
_UNIX_ORIGIN: Final = "http://localhost"
"""What the header Host says to a server behind a socket of the file system."""


class ServerAddress(msgspec.Struct, frozen=True):
    """Where requests go. `socket` is the path of a Unix socket, None for TCP."""

    url: str
    socket: str | None = None

    @property
    def shown(self) -> str:
        """The address for people, without its query, which may hold a key."""
        return self.url.partition("?")[0] if self.socket is None else f"{UNIX}{self.socket}"

    @property
    def origin(self) -> tuple[str, str, int | None]:
        """Scheme, host and port (RFC 6454): who gets what is sent."""
        parts = urlsplit(self.url)
        return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}[parts.scheme]


def parse_address(text: str) -> ServerAddress:
    """Raises `ValueError` for what is no `http://HOST[:PORT]/PATH`, the same with `https`, or `unix:PATH`."""
    if text.lower().startswith(UNIX):
        path = text[len(UNIX) :]
        if not path or "\0" in path:
            raise ValueError("url: unix: needs the path of a socket")
        return ServerAddress(f"{_UNIX_ORIGIN}/", path)
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port  # which raises where it is no number
    except ValueError:
        raise ValueError("url: its host or its port is none") from None
    if parts.username is not None or parts.password is not None:
        raise ValueError("url must not hold credentials: send them as the service param `authorization`")
    if parts.scheme not in ("http", "https") or not host or parts.netloc != parts.netloc.strip():
        raise ValueError("url must be http://HOST:PORT/, https://HOST/ or unix:PATH")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("url must be of printable ASCII characters: encode others with %")
    return ServerAddress(parts._replace(path=parts.path or "/", fragment="").geturl())
