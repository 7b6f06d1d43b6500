"""Scrubbing a message removes every secret and nothing else, and a replay can fill the secrets in again."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.client.json_path import parse_path, value_at
from discreet.errors.redaction import register, unregister
from discreet.errors.redaction.limits import REDACTED
from discreet.recording.format import Json, dump, load
from discreet.recording.scrubber import UNNUMBERED, MessageScrubber, removed_text

GITHUB = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"
KNOWN = "correct-horse-battery-staple-17"


def scrubbed(message: object) -> tuple[object, dict[str, int]]:
    """The scrubbed message as plain values, and the numbers of the removed secrets by path."""
    result = MessageScrubber().scrub(load(json.dumps(message).encode()))
    return json.loads(dump(result.message)), dict(result.removed)


@pytest.mark.parametrize(
    ("params", "expected", "places"),
    [
        ({"password": "hunter2"}, {"password": REDACTED}, ["password"]),
        ({"password": 12345}, {"password": REDACTED}, ["password"]),
        ({"note": f"with {GITHUB}."}, {"note": f"with {REDACTED}."}, ["note"]),
        ({"password": {"value": "x1", "plain": 7}}, {"password": {"value": REDACTED, "plain": REDACTED}}, ["password.value", "password.plain"]),
        ([{"name": "API_KEY", "value": "abc123"}], [{"name": "API_KEY", "value": REDACTED}], ["[0].value"]),
        ([{"value": "abc123", "name": "API_KEY"}], [{"value": REDACTED, "name": "API_KEY"}], ["[0].value"]),
        ([["Authorization", "hunter2x"]], [["Authorization", REDACTED]], ["[0][1]"]),
        ({"argv": ["--password", "hunter2"]}, {"argv": ["--password", REDACTED]}, ["argv[1]"]),
        ({"argv": ["/usr/bin/mysql", "-uroot", "-pKx9vQ2zLp"]}, {"argv": ["/usr/bin/mysql", "-uroot", f"-p{REDACTED}"]}, ["argv[2]"]),
        ({"argv": ["curl", "-u", "bob:a b,c'd"]}, {"argv": ["curl", "-u", REDACTED]}, ["argv[2]"]),
        ({"argv": ["ls", "-pKx9vQ2zLp", 3]}, {"argv": ["ls", "-pKx9vQ2zLp", 3]}, []),
        ({"tokens": ["abc", "def"]}, {"tokens": [REDACTED, REDACTED]}, ["tokens[0]", "tokens[1]"]),
        ({"userPin": 4711, "pin": "4711"}, {"userPin": REDACTED, "pin": REDACTED}, ["userPin", "pin"]),
        ({"pin": 13, "auth": "basic", "spin": 4711}, {"pin": 13, "auth": "basic", "spin": 4711}, []),
        ({"auth": "hunter2x9"}, {"auth": REDACTED}, ["auth"]),
        ({"path": "/home/alice/notes.txt"}, {"path": "/home/alice/notes.txt"}, []),
        ({"max_tokens": 100, "tokens": 3}, {"max_tokens": 100, "tokens": 3}, []),
        ({"secret": True, "password": None}, {"secret": True, "password": None}, []),
    ],
)  # fmt: skip
def test_secrets_are_removed_by_name_shape_and_structure_and_nothing_else_is(
    params: object, expected: object, places: list[str]
) -> None:
    message, removed = scrubbed({"method": "m", "params": params})
    assert message == {"method": "m", "params": expected}
    assert list(removed) == [f"params{'' if place.startswith('[') else '.'}{place}" for place in places]


@pytest.mark.parametrize(
    ("told", "secret"),
    [
        ({"password": "hunter2hunter2"}, "hunter2hunter2"),
        ({"password": "hunter2"}, "hunter2"),
        ({"password": "swordfish"}, "swordfish"),
        ({"otp": 482913}, "482913"),
        ({"argv": ["--token", "correct horse 7"]}, "correct horse 7"),
        ({"note": "password=tr0ub4dor-3"}, "tr0ub4dor-3"),
        ({"credentials": {"a": ["one-of-them-1"]}}, "one-of-them-1"),
    ],
)
def test_a_secret_found_by_its_name_is_removed_wherever_it_occurs_later(told: object, secret: str) -> None:
    scrubber = MessageScrubber()
    (number,) = scrubber.scrub(load(json.dumps({"params": told}).encode())).removed.values()
    again = {"id": f"id-{secret}", "params": ["ann", secret], "note": f"it was {secret}.", secret: 1}
    result = scrubber.scrub(load(json.dumps(again).encode()))
    assert secret not in dump(result.message).decode()
    assert dict(result.removed) == {"params[1]": number, "note": number}


def test_a_number_found_by_its_name_is_removed_later_too() -> None:
    scrubber = MessageScrubber()
    scrubber.scrub(load(b'{"otp":482913}'))
    assert dump(scrubber.scrub(load(b"[482913,1482913,482913.0]")).message) == b'["<redacted>",1482913,482913.0]'


@pytest.mark.parametrize("told", [{"token": "interface"}, {"password": "abc"}, {"secret": "true"}, {"token": "$TOKEN"}])
def test_common_values_stay_where_no_name_marks_them(told: dict[str, str]) -> None:
    scrubber = MessageScrubber()
    scrubber.scrub(load(json.dumps(told).encode()))
    (value,) = told.values()
    text = json.dumps({"kind": value, "note": f"of {value} kind"}).encode()
    assert dump(scrubber.scrub(load(text)).message) == dump(load(text))


@pytest.mark.parametrize(
    "message",
    [
        {"method": "m", "params": {"workDoneToken": "a", "partialResultToken": 2}},
        {"method": "m", "params": {"_meta": {"progressToken": 7}}},
        {"method": "$/progress", "params": {"token": 7, "value": {"percentage": 3}}},
        {"method": "initialize", "params": {"semanticTokens": {"formats": ["relative"], "tokenTypes": ["class"]}}},
    ],
)
def test_progress_tokens_and_language_tokens_stay(message: dict[str, Json]) -> None:
    assert scrubbed(message) == (message, {})


def test_a_progress_token_with_the_shape_of_a_secret_is_removed() -> None:
    message, removed = scrubbed({"method": "$/progress", "params": {"token": GITHUB}})
    assert GITHUB not in json.dumps(message)
    assert removed


def test_equal_secrets_have_equal_numbers_through_the_whole_session() -> None:
    scrubber = MessageScrubber()
    login = scrubber.scrub({"result": {"token": "abc", "refresh_token": "def"}})
    call = scrubber.scrub({"params": {"headers": {"authorization": "Bearer abc"}, "token": "def"}})
    within = scrubber.scrub({"params": {"note": f"{GITHUB} now"}}), scrubber.scrub({"result": {"token": GITHUB}})
    assert login.removed == {"result.token": 1, "result.refresh_token": 2}
    assert call.removed["params.token"] == 2
    assert [list(each.removed.values()) for each in within] == [[4], [4]]


def test_several_secrets_in_one_text_have_no_number() -> None:
    assert list(scrubbed({"note": f"{GITHUB} {GITHUB[:-1]}x"})[1].values()) == [UNNUMBERED]


@pytest.mark.parametrize(
    ("text", "clean", "piece"),
    [
        ("abc", REDACTED, "abc"),
        ("Bearer abc", f"Bearer {REDACTED}", "abc"),
        ("a=b;", f"a={REDACTED};", "b"),
        ("a b", f"{REDACTED} {REDACTED}", None),
        ("other", f"Bearer {REDACTED}", None),
        ("aa", f"aa{REDACTED}aa", None),
        ("long", "<cut>", None),
    ],
)
def test_the_removed_text_is_recovered(text: str, clean: str, piece: str | None) -> None:
    assert removed_text(text, clean) == piece


def test_ids_that_look_like_secrets_are_replaced_and_stay_different() -> None:
    scrubber = MessageScrubber()
    other = GITHUB[:-1] + "x"
    ids = [scrubber.scrub({"id": found, "method": "m"}).message for found in (GITHUB, other, GITHUB)]
    cancel = scrubber.scrub({"method": "$/cancelRequest", "params": {"id": other}}).message
    assert GITHUB not in str((ids, cancel))
    assert ids[0] == ids[2] != ids[1]
    assert value_at(cancel, ("params", "id")) == value_at(ids[1], ("id",))


def test_numbers_keep_every_digit() -> None:
    text = b'{"a":1e400,"b":1.0,"c":123456789012345678901234567890,"d":-0,"token":"x"}'
    assert dump(MessageScrubber().scrub(load(text)).message) == text.replace(b'"x"', b'"<redacted>"')


def test_a_secret_behind_a_repeated_member_does_not_stay() -> None:
    text = b'{"note":"' + GITHUB.encode() + b'","note":"fine"}'
    assert dump(MessageScrubber().scrub(load(text)).message) == b'{"note":"fine"}'


def test_keys_that_are_secrets_are_replaced_and_stay_different() -> None:
    message, _ = scrubbed({GITHUB: 1, GITHUB[:-1] + "x": 2})
    assert isinstance(message, dict)
    assert sorted(message.values()) == [1, 2]
    assert "ghp_" not in json.dumps(message)


def test_paths_are_removed_on_request_and_are_not_numbered() -> None:
    result = MessageScrubber(hide_paths=True).scrub({"params": {"uri": "file:///home/alice/x.py"}})
    assert "alice" not in str(result.message)
    assert result.removed == {"params.uri": UNNUMBERED}


keys = st.sampled_from(["a", "name", "value", "token", "id", "params", "x.y"]) | st.text(max_size=3)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just(KNOWN) | st.just(f"<{KNOWN}>"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_a_known_secret_stays_nowhere_and_scrubbing_twice_changes_nothing(value: object) -> None:
    register(KNOWN)
    try:
        once = MessageScrubber().scrub(load(json.dumps(value).encode()))
        assert KNOWN.encode() not in dump(once.message)
        again = MessageScrubber().scrub(once.message)
        assert dump(again.message) == dump(once.message)
    finally:
        unregister(KNOWN)


@given(values)
def test_every_reported_path_exists(value: object) -> None:
    result = MessageScrubber().scrub(load(json.dumps(value).encode()))
    assert all(value_at(result.message, parse_path(place)) is not None for place in result.removed)


@pytest.mark.parametrize(
    "text", [b"NaN", b"[Infinity]", b"\xff", b"\xef\xbb\xbf1", "{}".encode("utf-16"), b"", b"1 2", b"[" * 200_000]
)
def test_text_that_is_no_json_is_refused(text: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        load(text)


@pytest.mark.parametrize(
    ("told", "secret"),
    [
        ({"credentials": {"user": "svc", "value": "opensesame"}}, "opensesame"),
        ({"credentials": {"host": "db", "data": [{"v": "Willow-Hollow"}]}}, "Willow-Hollow"),
        ({"user": "svc", "pass": "Willow-Hollow-86"}, "Willow-Hollow-86"),
        ({"text": "user=bob password=opensesame token=abc123def456"}, "opensesame"),
        ({"text": "user=bob password=opensesame token=abc123def456"}, "abc123def456"),
        ({"text": "connect postgres://svc:p@ss/w0rdX@db.example.org/x"}, "p@ss/w0rdX"),
        ({"headers": [["Authorization", "Bearer abc123def456"]], "note": "abc123def456"}, "abc123def456"),
    ],
)
@pytest.mark.parametrize("place", ["it was {}, then", '{{"v": "{}"}}'])
def test_what_a_message_shows_is_removed_from_all_texts(told: object, secret: str, place: str) -> None:
    scrubber = MessageScrubber()
    text = place.format(secret)
    same = dump(scrubber.scrub(load(json.dumps({"before": text, "params": told}).encode())).message)
    later = dump(scrubber.scrub(load(json.dumps({"params": {"text": text}}).encode())).message)
    assert secret not in same.decode() + later.decode() + scrubber.scrub_text(text, cap=100)


def test_a_line_that_is_no_message_teaches_its_secrets_too() -> None:
    scrubber = MessageScrubber()
    assert scrubber.scrub_text("started with password=opensesame", cap=100) == f"started with password={REDACTED}"
    assert dump(scrubber.scrub({"note": "opensesame"}).message) == b'{"note":"<redacted>"}'
