"""A shell pipe is a client too: one JSON text per line, or frames with a header."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from discreet.framing.events import NEED_DATA, Frame, FrameLimits
from discreet.framing.parser import parser_for

Place = Any

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="for a POSIX shell")


@pytest.mark.parametrize("framing", ["newline", "auto"])
def test_a_session_of_lines_runs_from_its_handshake_to_its_end(place: Place, framing: str) -> None:
    done = place.run(["sh", "session.sh", "--framing", framing])
    messages = [json.loads(line) for line in done.stdout.decode().splitlines()]
    replies = {message["id"]: message for message in messages if "id" in message}
    results = {call: reply["result"] for call, reply in replies.items() if "result" in reply}
    faults = {call: reply["error"] for call, reply in replies.items() if "error" in reply}
    assert len(replies) == sum("id" in message for message in messages), "more than one answer"
    assert results.pop("initialize")["serverInfo"]["name"] == "session"
    assert results == {
        "add": 42,
        "text": "é→🙂",
        "count": 3,
        "large": "x" * 1_000_000 + "→",
        "shutdown": {"message": "Shutting down gracefully"},
    }
    assert {call: fault["code"] for call, fault in faults.items()} == {
        None: -32700,
        "unknown": -32601,
        "params": -32602,
        "refuse": -32000,
        "wait": -32800,
    }
    assert faults["refuse"]["data"] == {"code": "REFUSED", "retryable": False, "details": {"why": "it rains"}}
    assert [message["params"]["value"] for message in messages if message.get("method") == "$/progress"] == [1, 2, 3]
    assert done.returncode == 0
    assert b"daemon.window_closed" not in done.stderr, "what was cancelled still ran at the end"


def test_frames_from_a_shell_are_answered_in_frames(place: Place) -> None:
    done = place.run(["sh", "frames.sh"])
    parser = parser_for("content-length", FrameLimits())
    parser.receive_data(done.stdout)
    replies = {}
    while (event := parser.next_event()) is not NEED_DATA:
        assert isinstance(event, Frame), event
        reply = json.loads(event.body)
        replies[reply["id"]] = reply["result"]
    assert replies == {1: "é→🙂", 2: 42}
    assert done.returncode == 0
