"""What people read when a server can't be reached: what is wrong, where, and nothing of the URL that may be secret."""

from __future__ import annotations

import errno
import os
import ssl

import pytest

from discreet.client.http.connection import client_error
from discreet.client.http.wire import parse_address
from discreet.client.outbound.connection import LossReason, OutboundError

UNTRUSTED = ssl.SSLCertVerificationError(1, "secret")
UNTRUSTED.verify_message = "self-signed certificate"

CASES: list[tuple[LossReason, BaseException | None, str]] = [
    ("connect", OSError(errno.ECONNREFUSED, "secret"), os.strerror(errno.ECONNREFUSED).lower()),
    ("connect", None, "no connection"),
    ("tls", UNTRUSTED, "its certificate is not trusted: self-signed certificate"),
    ("tls", ssl.SSLError(1, "secret"), "the TLS handshake failed"),
    ("unresolved", None, "the host is unknown"),
    ("lost", OSError(errno.EPIPE, "secret"), "the connection was lost"),
]


@pytest.mark.parametrize("url", ["https://agent.example:8443/a?key=secret#b", "unix:/run/a"])
@pytest.mark.parametrize(("reason", "cause", "told"), CASES)
def test_a_failure_is_told_by_its_kind(reason: LossReason, cause: BaseException | None, told: str, url: str) -> None:
    failure = OutboundError(reason)
    failure.__cause__ = cause
    assert str(client_error(failure, parse_address(url).shown)) == f"{url.partition('?')[0]}: {told}"
