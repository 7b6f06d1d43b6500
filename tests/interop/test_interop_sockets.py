"""Listeners that spawn a daemon for every connection: its stdin and stdout are one socket, or a pair of them."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from discreet.framing.encoder import encode_frame
from discreet.framing.events import NEED_DATA, Frame, FrameLimits
from discreet.framing.parser import parser_for
from support.programs import has_ended
from support.requirements import missing
from support.waits import DEADLINE_SECONDS, wait_until

Place = Any

LISTENERS = {"socat": "socket_socat.sh", "systemd-socket-activate": "socket_systemd.sh"}

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")


class Connection:
    """A client of a Unix socket; every wait has a bound."""

    def __init__(self, path: str) -> None:
        wait_until(lambda: self._connect(path))
        self._parser = parser_for("content-length", FrameLimits())

    def _connect(self, path: str) -> bool:
        """Whether the listener listens; its address is there a little earlier."""
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(DEADLINE_SECONDS)
        try:
            self.socket.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            self.socket.close()
            return False
        return True

    def send(self, method: str, params: Any = None, **more: Any) -> None:
        self.socket.sendall(frame({"method": method, "params": params, **more}))

    def call(self, method: str, params: Any = None) -> dict[str, Any]:
        self.send(method, params, id=1)
        return self.read()

    def read(self) -> dict[str, Any]:
        while (event := self._parser.next_event()) is NEED_DATA:
            data = self.socket.recv(1 << 16)
            if not data:
                raise EOFError
            self._parser.receive_data(data)
        assert isinstance(event, Frame), event
        message: dict[str, Any] = json.loads(event.body)
        return message

    def ended(self) -> bool:
        """Whether nothing but the end comes now."""
        with pytest.raises((EOFError, ConnectionResetError)):  # reset, if it left something unread
            self.read()
        return True


def frame(message: dict[str, Any]) -> bytes:
    return encode_frame(json.dumps({"jsonrpc": "2.0", **message}).encode(), "content-length")


Connect = Callable[[], Connection]


@pytest.fixture(params=LISTENERS)
def connect(request: pytest.FixtureRequest, place: Place) -> Iterator[Connect]:
    """`connect()` is a new client of a listener that serves until the test is over."""
    if not shutil.which(request.param):
        missing(f"{request.param} is not installed")
    path = place.folder / "session.sock"
    assert len(str(path)) < 100, "the address of a Unix socket is short"
    with (place.folder / "log").open("wb") as log:
        listener = place.start(["sh", LISTENERS[request.param]], stdout=subprocess.DEVNULL, stderr=log)
    opened: list[Connection] = []

    def client() -> Connection:
        opened.append(Connection(str(path)))
        return opened[-1]

    try:
        yield client
    finally:
        for connection in opened:
            connection.socket.close()
        listener.terminate()
        listener.wait(DEADLINE_SECONDS)


def test_a_session_through_a_socket_runs_from_its_handshake_to_its_end(connect: Connect) -> None:
    client = connect()
    assert client.call("initialize", {"processId": None})["result"]["serverInfo"]["name"] == "session"
    assert client.call("session/add", {"a": 2, "b": 40})["result"] == 42
    large = "é→🙂" + "x" * 1_000_000
    assert client.call("session/echo", {"text": large})["result"] == large
    assert client.call("no/such")["error"]["code"] == -32601
    assert client.call("session/add", {"a": "é→🙂", "b": 1})["error"]["data"]["param"] == "a"
    assert client.call("session/refuse", {"why": "it rains"})["error"]["data"]["details"] == {"why": "it rains"}
    client.send("session/wait", id="w")
    client.send("$/cancelRequest", {"id": "w"})
    reply = client.read()
    assert (reply["id"], reply["error"]["code"]) == ("w", -32800)
    client.socket.sendall(b"this is no frame\r\n\r\n")
    assert client.read()["error"]["code"] == -32600
    assert client.call("shutdown")["result"] == {"message": "Shutting down gracefully"}
    assert client.ended()


def test_two_connections_have_a_daemon_each_and_closing_one_ends_only_its_own(connect: Connect, place: Place) -> None:
    first, second = connect(), connect()
    assert second.call("session/add", {"a": 2, "b": 40})["result"] == 42
    assert first.call("session/echo", {"text": "one"})["result"] == "one"
    daemons = place.daemons()
    assert len(daemons) == 2
    first.socket.close()
    wait_until(lambda: sum(map(has_ended, daemons)) == 1)
    assert second.call("session/echo", {"text": "two"})["result"] == "two"


def test_what_was_sent_before_a_client_closed_its_side_is_answered(connect: Connect) -> None:
    client = connect()
    client.send("session/add", {"a": 2, "b": 40}, id="last")
    client.socket.shutdown(socket.SHUT_WR)
    reply = client.read()
    assert (reply["id"], reply["result"]) == ("last", 42)
    assert client.ended()


def test_a_client_that_vanishes_in_the_middle_of_a_frame_leaves_no_daemon(connect: Connect, place: Place) -> None:
    client = connect()
    assert client.call("version")["result"]
    client.socket.sendall(b"Content-Length: 1000\r\n\r\n{")
    client.socket.close()
    wait_until(lambda: all(map(has_ended, place.daemons())))
