"""Where a key set comes from: a file, or an address that is fetched over HTTP. Bounded in bytes and seconds.

Blocks; never used on the event loop. Follows no redirect, uses no proxy, and sends nothing but the request.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

MAX_BYTES: Final = 256 * 1024
"""Of a key set. That of an issuer with two keys has 2 KB."""
FETCH_SECONDS: Final = 5.0
"""The time limit of a fetch, from the first packet to the last."""


class KeysUnavailable(Exception):
    """`str()` says why, and holds nothing of what was fetched."""


def source_of(place: str) -> Callable[[], bytes]:
    """Reads the file, or fetches what is at the address. The function raises `KeysUnavailable`."""
    if place.startswith(("https://", "http://")):
        return lambda: _fetch(place)
    return lambda: _read(place)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return _bounded(file.read(MAX_BYTES + 1))
    except OSError:
        raise KeysUnavailable("the file can't be read") from None


def _fetch(url: str) -> bytes:
    parts = urlsplit(url)
    if parts.hostname is None:
        raise KeysUnavailable("the address names no host")
    secure = parts.scheme == "https"
    connection = (
        HTTPSConnection(parts.hostname, parts.port, timeout=FETCH_SECONDS, context=ssl.create_default_context())
        if secure
        else HTTPConnection(parts.hostname, parts.port, timeout=FETCH_SECONDS)
    )
    limit = threading.Timer(FETCH_SECONDS, _abort, [connection])
    limit.daemon = True
    limit.start()
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("GET", path, headers={"accept": "application/jwk-set+json, application/json"})
        return _body(connection.getresponse())
    except (OSError, HTTPException, ValueError):  # of sockets, of ssl, and of what is no HTTP
        raise KeysUnavailable("the address does not answer") from None
    finally:
        limit.cancel()
        connection.close()


def _body(response: HTTPResponse) -> bytes:
    if response.status != 200:
        raise KeysUnavailable(f"the address answers with status {response.status}")
    return _bounded(response.read(MAX_BYTES + 1))


def _bounded(text: bytes) -> bytes:
    if len(text) > MAX_BYTES:
        raise KeysUnavailable(f"more than {MAX_BYTES // 1024} KiB")
    return text


def _abort(connection: HTTPConnection) -> None:
    """Wake the thread that waits for the connection: the time-out of a socket begins anew with each packet."""
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
