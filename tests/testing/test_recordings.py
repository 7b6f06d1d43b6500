"""A recorded session as a test: the services that it was recorded with pass, others are told what differs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from discreet import Context, Service
from discreet.recording.format import RecordingError
from discreet.testing import RecordingDiffers, replayed

BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])


def notes(title: str = "Milk") -> Service:
    service = Service("notes")

    @service.query()
    async def read(note: int) -> dict[str, object]:
        """Read a note."""
        return {"id": note, "title": title, "at": 5}

    @service.subscription()
    async def watch(to: int) -> AsyncIterator[int]:
        """Count."""
        for number in range(to):
            yield number

    @service.mutation()
    async def confirm(ctx: Context) -> object:
        """Ask the client."""
        return await ctx.request("ask", {"what": title})

    return service


SESSION = (
    '{"type":"start","ms":0.0,"version":1,"framing":"newline","command":["discreet","serve"]}',
    '{"type":"message","ms":1.0,"from":"client","message":{"jsonrpc":"2.0","id":"a","method":"notes/read","params":{"note":1}}}',
    '{"type":"message","ms":1.5,"from":"client","message":{"jsonrpc":"2.0","id":"b","method":"notes/watch","params":{"to":2}}}',
    '{"type":"message","ms":2.0,"from":"server","message":{"jsonrpc":"2.0","method":"stream/event","params":{"id":"b","seq":1,"value":0}}}',
    '{"type":"message","ms":2.1,"from":"server","message":{"jsonrpc":"2.0","method":"stream/event","params":{"id":"b","seq":2,"value":1}}}',
    '{"type":"message","ms":2.2,"from":"server","message":{"jsonrpc":"2.0","id":"b","result":{"completed":true,"events":2}}}',
    '{"type":"message","ms":2.3,"from":"server","message":{"jsonrpc":"2.0","id":"a","result":{"id":1,"title":"Milk","at":4}}}',
    '{"type":"message","ms":3.0,"from":"client","message":{"jsonrpc":"2.0","id":"c","method":"notes/confirm"}}',
    '{"type":"message","ms":3.1,"from":"server","message":{"jsonrpc":"2.0","id":77,"method":"ask","params":{"what":"Milk"}}}',
    '{"type":"message","ms":3.2,"from":"client","message":{"jsonrpc":"2.0","id":77,"result":"yes"}}',
    '{"type":"message","ms":3.3,"from":"server","message":{"jsonrpc":"2.0","id":"c","result":"yes"}}',
    '{"type":"closed","ms":4.0,"from":"client"}',
    '{"type":"end","ms":5.0,"status":0}',
)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_text("".join(f"{line}\n" for line in SESSION))
    return path


@BACKENDS
def test_services_that_answer_as_recorded_pass(session: Path, backend: str) -> None:
    report = replayed(session, notes(), ignore=["result.at"], backend=backend)
    assert (report.sent, report.compared, report.notes) == (4, 6, ())


def test_what_differs_is_told_and_asserted(session: Path) -> None:
    with pytest.raises(RecordingDiffers) as caught:
        replayed(session, notes("Eggs"))
    assert isinstance(caught.value, AssertionError)
    places = {(found.message, found.path) for found in caught.value.report.differences}
    assert places == {
        ('notes/read id "a"', "result.title"),
        ('notes/read id "a"', "result.at"),
        ("request ask", "params.what"),
    }
    assert all(word in str(caught.value) for word in ("session.jsonl", '"Eggs"', '"Milk"'))


def test_settings_are_those_of_a_daemon_in_memory(session: Path) -> None:
    with pytest.raises(RecordingDiffers):
        replayed(session, notes(), ignore=["result.at"], max_message_bytes=64, timeout=0.05)
    with pytest.raises(TypeError):
        replayed(session, notes(), no_such_setting=1)


def test_a_file_that_is_no_recording_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(msgspec.json.encode({"a": 1}) + b"\n")
    with pytest.raises(RecordingError):
        replayed(path, notes())


@pytest.mark.anyio
async def test_an_async_test_is_told_that_this_is_for_plain_functions(session: Path) -> None:
    with pytest.raises(RuntimeError, match="replayed runs an event loop of its own: call it in a plain function"):
        replayed(session, notes())


def test_a_replay_without_a_service_says_so(session: Path) -> None:
    with pytest.raises(TypeError, match="no service is given"):
        replayed(session)
