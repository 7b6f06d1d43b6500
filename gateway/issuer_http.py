"""Asks an issuer: fetches a file or an address, or posts a form to one. Bounded in bytes and seconds.

Blocks; never used on the event loop. Follows no redirect, uses no proxy, and sends nothing but the request.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlencode, urlsplit

MAX_BYTES: Final = 256 * 1024
"""Of an answer. The key set of an issuer with two keys has 2 KB."""
FETCH_SECONDS: Final = 5.0
"""The time limit of a request, from the first packet to the last."""


class NotAnswered(Exception):
    """A file can't be read, or an address gives no answer. The message says why, and holds nothing of the answer. `status` is
    that of an answer which is none."""

    def __init__(self, problem: str, status: int | None = None) -> None:
        super().__init__(problem)
        self.status = status


def source_of(place: str) -> Callable[[], bytes]:
    """Return a function that reads the file, or fetches the address. It raises `NotAnswered`."""
    if place.startswith(("https://", "http://")):
        return lambda: _ask("GET", place, {"accept": "application/jwk-set+json, application/json"})
    return lambda: _read(place)


def post_form(url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> bytes:
    """Send the form, and return the JSON text of the answer. Raises `NotAnswered` also for each status but 200."""
    kind = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
    return _ask("POST", url, {**kind, **headers}, urlencode(form).encode())


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return _bounded(file.read(MAX_BYTES + 1))
    except OSError:
        raise NotAnswered("the file can't be read") from None


def _ask(method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> bytes:
    parts = urlsplit(url)
    if parts.hostname is None:
        raise NotAnswered("the address names no host")
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
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        if response.status != 200:
            raise NotAnswered(f"the address answers with status {response.status}", response.status)
        return _bounded(response.read(MAX_BYTES + 1))
    except (OSError, HTTPException, ValueError):  # of sockets, of ssl, and of what is no HTTP
        raise NotAnswered("the address does not answer") from None
    finally:
        limit.cancel()
        connection.close()


def _bounded(text: bytes) -> bytes:
    if len(text) > MAX_BYTES:
        raise NotAnswered(f"more than {MAX_BYTES // 1024} KiB")
    return text


def _abort(connection: HTTPConnection) -> None:
    """Wake the thread that waits for the connection: the time-out of a socket begins anew with each packet."""
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
