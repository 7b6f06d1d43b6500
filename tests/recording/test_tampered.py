"""Recordings that something has changed: read and played, or refused with one line. Nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet import Service
from discreet.cli.verbs.replay import load_script
from discreet.daemon.settings import UsageError
from discreet.recording import format as recording_format
from discreet.recording import replay as replaying
from discreet.recording.replay import ReplayResult, compare, replay
from discreet.testing.memory import client_framing, memory_daemon, settings_of

START = b'{"type":"start","ms":0,"version":1,"framing":"newline","command":["shop"]}\n'
CALL = b'{"jsonrpc":"2.0","id":1,"method":"shop/add","params":{"a":1,"token":"<redacted>"}}'
RECORDING = b"".join(
    (
        START,
        b'{"type":"message","ms":1.5,"from":"client","message":%b,"scrubbed":{"params.token":1}}\n' % CALL,
        b'{"type":"stderr","ms":2,"text":"a line"}\n',
        b'{"type":"message","ms":3,"from":"server","message":{"jsonrpc":"2.0","id":7,"method":"ask","params":{"q":"?"}}}\n',
        b'{"type":"message","ms":4,"from":"client","message":{"jsonrpc":"2.0","id":7,"result":[1,2.5,null]}}\n',
        b'{"type":"message","ms":5,"from":"server","message":{"jsonrpc":"2.0","id":1,"result":{"key":"<redacted>"}},"scrubbed":{"result.key":1}}\n',
        b'{"type":"omitted","ms":6,"from":"client","reason":"oversize","bytes":9}\n',
        b'{"type":"closed","ms":7,"from":"client"}\n',
        b'{"type":"end","ms":8,"status":0}\n',
    )
)


def entry(message: bytes, sender: bytes = b"client", rest: bytes = b"") -> bytes:
    return START + b'{"type":"message","ms":1,"from":"%b","message":%b%b}\n' % (sender, message, rest)


REFUSED = {
    "nothing": b"",
    "binary": bytes(range(256)) * 20 + b"\n",
    "an enormous line": b"x" * 1_000_000 + b"\n",
    "another version": START.replace(b'"version":1', b'"version":2'),
    "a huge version": START.replace(b'"version":1', b'"version":' + b"9" * 5000),
    "an unknown framing": START.replace(b"newline", b"morse"),
    "a negative time": RECORDING.replace(b'"ms":1.5', b'"ms":-1.5'),
    "a time with 5000 digits": RECORDING.replace(b'"ms":1.5', b'"ms":' + b"9" * 5000),
    "a negative number of a secret": RECORDING.replace(b'"params.token":1', b'"params.token":-1'),
    "an unknown sender": entry(CALL, b"nobody"),
    "an unknown type": RECORDING.replace(b'"stderr"', b'"nonesuch"'),
    "two starts": START + RECORDING,
    "no start": RECORDING.partition(b"\n")[2],
    "an entry after the end": RECORDING + b'{"type":"closed","ms":9,"from":"server"}\n',
    "a message nested too deep": entry(b"[" * 100_000 + b"]" * 100_000),
    "a message with a lone surrogate": entry(b'{"id":1,"method":"\\ud800"}'),
    "a message that is no JSON": entry(b"NaN"),
    "a scrubbed path that is none": entry(CALL, rest=b',"scrubbed":{"params[":1}'),
    "a scrubbed path with a bad text": entry(CALL, rest=b',"scrubbed":{"[\\"\\\\ud800\\"]":1}'),
    "a scrubbed path that leads nowhere": entry(CALL, rest=b',"scrubbed":{"params.nothing":1}'),
    "another encoding": RECORDING.decode().encode("utf-16"),
    "a mark of the byte order": b"\xef\xbb\xbf" + RECORDING,
}


def load(path: Path, data: bytes) -> Any:
    path.write_bytes(data)
    return load_script(str(path))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_recording_is_wrong_usage(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        load(tmp_path / "a.jsonl", REFUSED[name])


def test_a_recording_that_is_too_large_is_wrong_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(tmp_path / "a.jsonl", RECORDING)
    monkeypatch.setattr(recording_format, "MAX_RECORDING_BYTES", len(RECORDING) - 1)
    with pytest.raises(UsageError):
        load(tmp_path / "a.jsonl", RECORDING)


# -- hypothesis -------------------------------------------------------------------------------------------------------

VALUES = st.sampled_from(
    [None, True, -1, 0, 1e308, 10**30, "", "x", "<redacted>", [], {}, [[]], {"a": 1}, "result.key", "params[", -1e9]
)
SCRUBBED = st.dictionaries(
    st.sampled_from(["", "id", "params.token", "result.key", "result", "params["]), VALUES, max_size=2
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in a JSON value."""
    if path:
        yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from places(member, (*path, key))


@st.composite
def tampered(draw: st.DrawFn) -> bytes:
    """A recording of which entries, values or bytes were changed."""
    entries: list[Any] = [json.loads(line) for line in RECORDING.splitlines()]
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(entries) - 1))
        match draw(st.sampled_from(["value", "repeat", "move", "scrubbed", "remove"])):
            case "value":
                *way, last = draw(st.sampled_from(list(places(entries[at])) or [("type",)]))
                target = entries[at]
                for step in way:
                    target = target[step]
                target[last] = copy.deepcopy(draw(VALUES))  # else what is sampled would change with it
            case "repeat":
                entries.insert(draw(st.integers(0, len(entries))), copy.deepcopy(entries[at]))
            case "move":
                entries.insert(draw(st.integers(0, len(entries) - 1)), entries.pop(at))
            case "scrubbed":
                entries[at]["scrubbed"] = copy.deepcopy(draw(SCRUBBED))
            case _ if len(entries) > 1:
                entries.pop(at)
    data = bytearray(b"".join(json.dumps(each).encode() + b"\n" for each in entries))
    for _ in range(draw(st.integers(0, 2))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.sampled_from([None, 300, 700]))])


shop = Service("shop")


@shop.query()
async def add(a: int, token: str) -> dict[str, str]:
    """Answer with the token."""
    return {"key": token}


async def play(loaded: Any, *services: Service, timeout: float = 0.01) -> ReplayResult:
    chosen = settings_of({})
    async with memory_daemon([shop, *services], chosen, provider=None, credentials=None) as transport:
        played = await replay(loaded, transport, framing=client_framing(chosen), timeout=timeout)
    str(compare(loaded, played, ignore=["**.mtime"]))
    return played


@given(tampered())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_tampered_recording_is_played_or_refused(tmp_path: Path, data: bytes) -> None:
    try:
        loaded = load(tmp_path / "a.jsonl", data)
    except UsageError:
        return
    anyio.run(play, loaded)


def said(sender: bytes, message: bytes) -> bytes:
    return entry(message, sender).removeprefix(START)


@pytest.mark.parametrize("depth", [100, 450, 900])
def test_an_answer_nested_deep_is_compared(tmp_path: Path, depth: int) -> None:
    echo = Service("echo")

    @echo.query()
    async def back() -> Any:
        value: Any = 1
        for _ in range(depth):
            value = {"a": value}
        return value

    asked = b'{"jsonrpc":"2.0","id":1,"method":"echo/back"}'
    answer = b'{"jsonrpc":"2.0","id":1,"result":%b}' % (b'{"a":' * depth + b"2" + b"}" * depth)
    try:
        loaded = load(tmp_path / "a.jsonl", START + said(b"client", asked) + said(b"server", answer))
    except UsageError:
        return
    anyio.run(partial(play, loaded, echo, timeout=0.1))


def test_a_server_that_sends_far_more_than_recorded_ends_the_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "MAX_SURPLUS_BYTES", 1000)
    call = b'{"jsonrpc":"2.0","id":%d,"method":"shop/add","params":{"a":1,"token":"%b"}}'
    calls = b"".join(said(b"client", call % (number, b"x" * 400)) for number in range(10))
    loaded = load(tmp_path / "a.jsonl", START + calls + b'{"type":"end","ms":8,"status":0}\n')
    played = anyio.run(partial(play, loaded, timeout=1))
    assert played.overrun
    assert compare(loaded, played).differences[-1].message == "the server"
