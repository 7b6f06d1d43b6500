"""Where to listen, as users write it: `HOST:PORT`, `[ADDRESS]:PORT`, or `unix:PATH`. Reads text, opens nothing."""

import os
from typing import Final, final

from msgspec import Struct

ADDRESS_FORM: Final = "HOST:PORT or unix:PATH"
KEYS_FORM: Final = "an existing file, or an address that begins with https:// (http:// on this machine alone)"
UNIX: Final = "unix:"


@final
class Address(Struct, frozen=True):
    """Where to listen: a unix socket where `path` is set."""

    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def loopback(self) -> bool:
        """Whether only processes of this machine can connect."""
        return bool(self.path) or _is_loopback(self.host)


def read_address(text: str) -> Address | None:
    """The address that a text names; None for none."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        return Address(path=path) if path and "\0" not in path else None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        return None
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        return None
    return Address(host or "127.0.0.1", int(port))


def _is_loopback(host: str) -> bool:
    """Whether a server that binds this host can be reached from this machine alone."""
    from ipaddress import ip_address  # late: only who serves HTTP needs it

    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_key_address(text: str) -> bool:
    """Whether public keys may be fetched from here: nobody may change them on their way."""
    from urllib.parse import urlsplit  # late: as above

    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or parts.username is not None or not text.isprintable() or " " in text:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))


def absolute_address(text: str, directory: str) -> str:
    """The same with an absolute path, where it has one."""
    return UNIX + os.path.join(directory, text.removeprefix(UNIX)) if text.startswith(UNIX) else text
