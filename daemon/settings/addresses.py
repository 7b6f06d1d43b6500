"""Where to listen, as users write it: `HOST:PORT`, `[ADDRESS]:PORT`, or `unix:PATH`. Reads text, opens nothing."""

import os
import re
from typing import Final, final

from msgspec import Struct

ADDRESS_FORM: Final = "HOST:PORT or unix:PATH"
KEYS_FORM: Final = "an existing file, or an address that begins with https:// (http:// on this machine alone)"
UNIX: Final = "unix:"

MAX_PORT: Final = 65535

_HOST: Final = re.compile(r"[\w.-]*").fullmatch
_IPV6: Final = re.compile(r"[0-9A-Fa-f:.]+").fullmatch


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
    if not (
        colon and port.isascii() and port.isdecimal() and len(port) <= len(str(MAX_PORT)) and int(port) <= MAX_PORT
    ):
        return None
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif not _HOST(host):
        return None
    return Address(host or "127.0.0.1", int(port))


def about_wrong_address(text: str) -> str:
    """The end of a message on a text that is no address: what is wrong with it; empty for no idea. Repeats nothing of it."""
    host, colon, _ = text.rpartition(":")
    if not text:
        return ""
    if text.startswith(UNIX):
        return "; the path is missing"
    if "://" in text:
        return "; without http://, and without a path"
    if text.startswith((os.sep, os.curdir)):
        return "; the path of a unix socket is written unix:PATH"
    if "/" in text:
        return "; without a path"
    if text.isdecimal():
        return "; the host is missing, such as 127.0.0.1:8000"
    if host.count(":") and _IPV6(text):
        return "; an IPv6 address stands in brackets, such as [::1]:8000"
    if not colon or text.endswith((":", "]")):
        return "; the port is missing, such as 127.0.0.1:8000"
    if host == "*":
        return "; all addresses of this machine are 0.0.0.0"
    return f"; the port is a number from 0 to {MAX_PORT}" if _HOST(host) or host.endswith("]") else ""


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
