"""Says in a phrase why a request got no response. Builds it from kinds of errors, never from their texts."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import httpx

from ..errors import ConnectionLoss

FOREIGN_ERRORS: Final = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL)
"""What httpx raises. Each is translated where it is called."""


def loss_of(exc: Exception, shown: str) -> ConnectionLoss:
    """Why the server at the address `shown` could not be reached, or was lost."""
    return ConnectionLoss(f"{shown}: {_reason(exc)}")


def _reason(exc: Exception) -> str:
    causes = list(_causes(exc))
    for cause in causes:
        match cause:
            case ssl.SSLCertVerificationError():
                return f"its certificate is not trusted: {cause.verify_message}"
            case ssl.SSLError():
                return "the TLS handshake failed"
            case socket.gaierror():
                return "the host is unknown"
            case OSError(errno=int(number)) if number:
                return os.strerror(number).lower()
            case _:
                continue
    match exc:
        case httpx.ConnectTimeout():
            return "no connection within the time limit"
        case httpx.ConnectError():
            return "no connection"
        case httpx.RemoteProtocolError():
            return "the server ended the connection before its answer was complete, or its answer is no HTTP"
        case _:
            return "the connection was lost"


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """The exception, what caused it, and so on."""
    waiting: list[BaseException] = [exc]
    seen: set[int] = set()
    while waiting:
        cause = waiting.pop(0)
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        waiting += [each for each in (cause.__cause__, cause.__context__) if each is not None]
        if isinstance(cause, BaseExceptionGroup):
            waiting += cause.exceptions
