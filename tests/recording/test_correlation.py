"""What each message of a session is, and which request it belongs to."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from discreet.recording import lines
from discreet.recording.format import MessageEntry, Sender
from discreet.recording.lines import Correlation, SeenMessage


def read(correlated: Correlation, sender: Sender, *messages: object) -> list[SeenMessage]:
    texts = [message if isinstance(message, bytes) else json.dumps(message).encode() for message in messages]
    return [correlated.read(MessageEntry(ms=1.0, sender=sender, message=Raw(text))) for text in texts]


def belongs_to(seen: SeenMessage) -> tuple[str, str] | None:
    return seen.request and (seen.request.asker, seen.request.id)


@pytest.mark.parametrize(
    ("request_params", "method", "params"),
    [
        ({"workDoneToken": "t"}, "$/progress", {"token": "t", "value": {}}),
        ({"partialResultToken": 7}, "$/progress", {"token": 7, "value": []}),
        ({"_meta": {"progressToken": "t"}}, "notifications/progress", {"progressToken": "t", "progress": 1}),
    ],
)
def test_progress_belongs_to_the_request_that_named_its_token(
    request_params: object, method: str, params: object
) -> None:
    correlated = Correlation()
    read(correlated, "client", {"id": 1, "method": "a"}, {"id": 2, "method": "b", "params": request_params})
    (seen,) = read(correlated, "server", {"method": method, "params": params})
    assert (seen.kind, belongs_to(seen)) == ("progress", ("client", "2"))
    (other,) = read(correlated, "client", {"method": method, "params": params})
    assert belongs_to(other) is None


def test_progress_that_the_server_creates_belongs_to_its_own_request_also_after_the_answer() -> None:
    correlated = Correlation()
    read(correlated, "server", {"id": 1, "method": "window/workDoneProgress/create", "params": {"token": "t"}})
    read(correlated, "client", {"id": 1, "result": None})
    (seen,) = read(correlated, "server", {"method": "$/progress", "params": {"token": "t"}})
    assert belongs_to(seen) == ("server", "1")


def test_updates_of_an_agents_session_belong_to_its_open_prompt() -> None:
    correlated = Correlation()
    update = {"method": "session/update", "params": {"sessionId": "s", "update": {}}}
    (before,) = read(correlated, "server", update)
    read(correlated, "client", {"id": 1, "method": "session/prompt", "params": {"sessionId": "s"}})
    (during,) = read(correlated, "server", update)
    read(correlated, "server", {"id": 1, "result": {}})
    (after,) = read(correlated, "server", update)
    assert [belongs_to(it) for it in (before, during, after)] == [None, ("client", "1"), None]
    assert [it.kind for it in (before, during, after)] == ["notification", "progress", "notification"]


@pytest.mark.parametrize(
    ("method", "name"),
    [("$/cancelRequest", "id"), ("$/cancel_request", "requestId"), ("notifications/cancelled", "requestId")],
)
def test_a_cancellation_belongs_to_the_request_of_the_side_that_sends_it(method: str, name: str) -> None:
    correlated = Correlation()
    read(correlated, "client", {"id": "x", "method": "a"})
    cancel = {"method": method, "params": {name: "x"}}
    assert belongs_to(*read(correlated, "client", cancel)) == ("client", '"x"')
    assert belongs_to(*read(correlated, "server", cancel)) is None


def test_the_ids_of_the_two_sides_and_of_strings_and_numbers_are_different_ids() -> None:
    correlated = Correlation()
    read(correlated, "client", {"id": 1, "method": "a"}, {"id": "1", "method": "b"})
    read(correlated, "server", {"id": 1, "method": "c"})
    answers = [
        *read(correlated, "server", {"id": "1", "result": 1}, {"id": 1, "error": {}}),
        *read(correlated, "client", {"id": 1, "result": 1}),
    ]
    assert [(it.kind, it.method) for it in answers] == [("answer", "b"), ("error", "a"), ("answer", "c")]
    assert (correlated.requests, correlated.answered) == (3, 3)
    assert belongs_to(*read(correlated, "server", {"id": 1, "result": 1})) is None


@pytest.mark.parametrize(
    "message",
    [
        b'{"method":5,"id":1}',
        b'{"method":"$/progress","params":[1]}',
        b'{"method":"$/progress","params":{"token":{"a":[]}}}',
        b'{"method":"$/cancelRequest"}',
        b'{"method":"stream/event","params":{"id":[]}}',
        b'{"method":"\\u202e","id":"\\u0000","params":{"_meta":5}}',
        b'{"id":{"a":1},"method":"window/workDoneProgress/create","params":{}}',
    ],
)
def test_odd_members_are_shown_and_nothing_is_raised(message: bytes) -> None:
    (seen,) = read(Correlation(), "client", message)
    assert seen.kind != "other" and (seen.id + seen.method).isprintable()


def test_long_names_and_ids_are_cut_and_unanswered_requests_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_OPEN", 2)
    correlated = Correlation()
    (seen,) = read(correlated, "client", {"id": "i" * 100_000, "method": "m" * 100_000})
    assert len(seen.id) < 200 and len(seen.method) < 200
    read(correlated, "client", {"id": 1, "method": "a"}, {"id": 2, "method": "b"})
    oldest, youngest = read(correlated, "server", {"id": "i" * 100_000, "result": 1}, {"id": 2, "result": 1})
    assert (oldest.request, youngest.method) == (None, "b")
