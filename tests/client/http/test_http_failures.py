"""What people read when a server can't be reached: what is wrong, where, and nothing of the URL that may be secret."""

from __future__ import annotations

import errno
import os
import socket
import ssl

import httpx
import pytest

from discreet.client.http.addresses import parse_address
from discreet.client.http.failures import loss_of


def caused(exc: Exception, cause: BaseException) -> Exception:
    exc.__cause__ = cause
    return exc


UNTRUSTED = ssl.SSLCertVerificationError(1, "secret")
UNTRUSTED.verify_message = "self-signed certificate"

CASES = [
    (caused(httpx.ConnectError("secret"), OSError(errno.ECONNREFUSED, "secret")), os.strerror(errno.ECONNREFUSED).lower()),
    (caused(httpx.ConnectError("secret"), ExceptionGroup("g", [OSError(errno.EHOSTUNREACH, "secret")])),
     os.strerror(errno.EHOSTUNREACH).lower()),
    (caused(httpx.ConnectError("secret"), UNTRUSTED), "its certificate is not trusted: self-signed certificate"),
    (caused(httpx.ConnectError("secret"), ssl.SSLError(1, "secret")), "the TLS handshake failed"),
    (caused(httpx.ConnectError("secret"), socket.gaierror(-2, "secret")), "the host is unknown"),
    (httpx.ConnectTimeout("secret"), "no connection within the time limit"),
    (httpx.ConnectError("secret"), "no connection"),
    (httpx.ReadError("secret"), "the connection was lost"),
]  # fmt: skip


@pytest.mark.parametrize(("exc", "reason"), CASES)
def test_a_failure_is_told_by_its_kind(exc: Exception, reason: str) -> None:
    shown = parse_address("https://agent.example:8443/a?key=secret#b").shown
    assert loss_of(exc, shown).reason == f"https://agent.example:8443/a: {reason}"


def test_other_failures_name_the_address_too() -> None:
    reason = loss_of(httpx.RemoteProtocolError("secret"), parse_address("unix:/run/a").shown).reason
    assert reason.startswith("unix:/run/a: ") and "secret" not in reason
