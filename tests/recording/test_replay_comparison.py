"""What a replay compares: every field but the ignored ones, secrets, garbage, and values as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.recording.format import OmittedEntry, load
from discreet.recording.replay import differences
from support.replays import SHORT_SECONDS, Behaviour, Server, call, echo, recording, replayed, reply, result

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("ignore", [["result.at"], ["result.*"], ["**.at"], ["result"]])
async def test_ignored_fields_are_ignored_with_everything_below_them(ignore: list[str]) -> None:
    session = recording(call(1, "a", at={"x": 1}), result(1, {"at": {"x": 2, "y": 3}}))
    report, _ = await replayed(session, echo, ignore=ignore)
    assert report.differences == ()


async def test_other_fields_are_not_ignored() -> None:
    report, _ = await replayed(recording(call(1, "a", at=1), result(1, {"at": 2})), echo, ignore=["result.x", "at"])
    assert [d.path for d in report.differences] == ["result.at"]


async def test_the_secret_of_this_run_replaces_the_recorded_one() -> None:
    async def login(server: Server) -> None:
        assert await server.read()
        await server.write(reply(1, {"token": "fresh-Secret-1"}))
        assert await server.read()
        await server.write(reply(2, {}))

    session = recording(
        call(1, "login"),
        result(1, {"token": "<redacted>"}),
        call(2, "me", token="<redacted>", header="Bearer <redacted>", password="<redacted>"),
        result(2, {}),
        scrubbed={1: {"result.token": 1}, 2: {"params.token": 1, "params.header": 1, "params.password": 2}},
    )
    report, server = await replayed(session, login)
    assert server.seen[1]["params"] == {
        "token": "fresh-Secret-1",
        "header": "Bearer fresh-Secret-1",
        "password": "<redacted>",
    }
    assert report.differences == ()
    assert [note.split(";")[0] for note in report.notes] == ["me: params.password was scrubbed"]


async def test_no_difference_shows_a_secret() -> None:
    secret = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"
    report, _ = await replayed(
        recording(call(1, "a"), result(1, {"note": "no"})), _answering({"note": f"it is {secret}"})
    )
    assert len(report.differences) == 1
    assert secret not in str(report.differences)


def _answering(value: Any) -> Behaviour:
    async def answer(server: Server) -> None:
        message = await server.read()
        assert message
        await server.write(reply(message["id"], value))

    return answer


async def test_garbage_of_the_server_is_a_difference_and_the_replay_goes_on() -> None:
    async def garbage(server: Server) -> None:
        assert await server.read()
        await server.write(b"no json", reply(1, {}))

    report, _ = await replayed(recording(call(1, "a"), result(1, {})), garbage)
    assert [d.message for d in report.differences] == ["the server"]
    assert report.compared == 1


async def test_garbage_of_the_client_is_not_sent_and_its_errors_are_not_expected() -> None:
    session = recording(
        OmittedEntry(ms=0.0, sender="client", reason="malformed-header", size=9),
        ("server", {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Invalid Request"}}),
        call(1, "a"),
        result(1, {}),
    )
    report, _ = await replayed(session, echo, timeout=SHORT_SECONDS)
    assert report.differences == ()
    assert len(report.notes) == 1


@pytest.mark.parametrize(
    ("one", "other", "places"),
    [
        ("1", "1.0", []),
        ("1e400", "1e400", []),
        ("1e400", "2e400", [()]),
        ("true", "1", [()]),
        ("null", '""', [()]),
        ('{"a":1,"b":2}', '{"b":2,"a":1}', []),
        ('{"a":null}', "{}", [("a",)]),
        ("[1,2]", "[1]", [(1,)]),
        ('[{"a":[0]}]', '[{"a":[1]}]', [(0, "a", 0)]),
        ("{}", "[]", [()]),
    ],
)
def test_values_are_compared_as_json(one: str, other: str, places: list[object]) -> None:
    found = differences(load(one.encode()), load(other.encode()), lambda _: False)
    assert [path for path, _, _ in found] == places


async def test_messages_after_the_end_of_a_cut_recording_are_not_compared() -> None:
    session = recording(call(1, "a", x=1), result(1, {"x": 1}), call(2, "b", x=2), cut=True)
    report, _ = await replayed(session, echo)
    assert (report.differences, report.sent, report.compared) == ((), 2, 1)
    assert [note for note in report.notes if "cut off" in note] == list(report.notes)
    wrong, _ = await replayed(recording(call(1, "a", x=1), result(1, {"x": 2}), cut=True), echo)
    assert len(wrong.differences) == 1
