"""The process and broken frames: an error means that the next request is read."""

from __future__ import annotations

from typing import Any

import pytest

from support.wire import frame, request

BODY = b'{"jsonrpc":"2.0","id":1,"method":"quick"}'


def declared(length: int, body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (length, body)


BROKEN = {
    "too short": declared(len(BODY) - 3, BODY),
    "no JSON and junk": frame(b"{bad") + b"junk",
    "junk": b"junk\r\n\r\n" * 100,
    "text": BODY,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_request_that_is_sent_on_seeing_the_error_is_answered(spawn: Any, name: str) -> None:
    daemon = spawn("serve", "./app.py:app")
    for number in range(10, 13):
        daemon.write(BROKEN[name])
        error = daemon.read()
        assert "error" in error
        assert error["id"] is None
        daemon.write(request(number, "app/pid"))
        while (answer := daemon.read()).get("id") != number:
            assert answer["id"] is None
        assert "result" in answer
