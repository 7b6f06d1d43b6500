"""Nested values become scrubbed copies, bounded and unchanged by a second round; details keep their structure."""

from __future__ import annotations

import collections
import dataclasses
import enum
import json
import random
import uuid
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors.redaction import Scrubber, scrub_details, scrub_fields


@pytest.fixture(scope="module")
def scrubber() -> Scrubber:
    return Scrubber()


@dataclasses.dataclass
class Login:
    user: str
    password: str


class Record(msgspec.Struct):
    api_key: str
    path: str
    login: Login | None = None


class Pair(NamedTuple):
    token: str
    count: int


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("never shown")


class BrokenMapping(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        raise ValueError("never shown")

    def __len__(self) -> int:
        return 1


class Elusive:
    """Like a proxy outside of its context: even asking for the class fails."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise RuntimeError("never shown")


class Color(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "copy"),
    [
        ({"password": "hunter2", "n": 1}, {"password": "<redacted>", "n": 1}),
        ({"a": {"b": [{"api_key": b"abc"}]}}, {"a": {"b": [{"api_key": "<redacted>"}]}}),
        (Login("bob", "hunter2"), {"user": "bob", "password": "<redacted>"}),
        (Record("k", "/home/alice/x.py", Login("b", "p")),
         {"api_key": "<redacted>", "path": "<path>/x.py", "login": {"user": "b", "password": "<redacted>"}}),
        (Pair("abc", 3), {"token": "<redacted>", "count": 3}),
        ({"secrets": {"a": "b"}}, {"secrets": "<redacted>"}),
        ({"cookies": ["a", "b"]}, {"cookies": "<redacted>"}),
        ({"token": None, "secret": "", "password": True, "tokens": 512, "credentials": []},
         {"token": None, "secret": "", "password": True, "tokens": 512, "credentials": []}),
        ({"pin": 1, "password": 12345678}, {"pin": 1, "password": "<redacted>"}),
        ({"key": "user:1", "token_count": "5"}, {"key": "user:1", "token_count": "5"}),
        ([("Authorization", "Basic abc"), (b"cookie", b"a=1")], [["Authorization", "<redacted>"], ["cookie", "<redacted>"]]),
        (["run", "--password", "hunter2", "-v"], ["run", "--password", "<redacted>", "-v"]),
        ([{"name": "DB_PASSWORD", "value": "x"}], [{"name": "DB_PASSWORD", "value": "<redacted>"}]),
        ({"name": "LANG", "value": "C"}, {"name": "LANG", "value": "C"}),
        ({"/home/alice/x": 1, 5: 2, None: 3}, {"<path>/x": 1, "5": 2, "None": 3}),
        ({"/a/b/x.py": 1, "/c/d/x.py": 2}, {"<path>/x.py": 1, "<path>/x.py#2": 2}),
        (b"\xff token=abc123", "\\xff token=<redacted>"),
        (collections.deque([1, 2]), [1, 2]),
        (range(3), [0, 1, 2]),
        (frozenset({"a"}), ["a"]),
        (Color.RED, "Color.RED"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Broken(), "<Broken>"),
        (BrokenMapping(), "<BrokenMapping>"),
        ({"x": Broken()}, {"x": "<Broken>"}),
        ({"x": Elusive(), "password": Elusive()}, {"x": "<Elusive>", "password": "<redacted>"}),
        ([10**5000], ["<cut>"]),
        (1.5, 1.5),
        (ValueError("token=abc123"), "ValueError: token=<redacted>"),
    ],
)  # fmt: skip
def test_values_become_plain_scrubbed_copies(scrubber: Scrubber, value: object, copy: object) -> None:
    assert scrubber.scrub_fields(value) == copy


def test_what_is_given_is_not_changed(scrubber: Scrubber) -> None:
    value = {"password": "hunter2", "inner": ["/home/alice/x", {"token": "abc"}]}
    before = json.dumps(value)
    scrubber.scrub_fields(value)
    assert json.dumps(value) == before


def test_cycles_end(scrubber: Scrubber) -> None:
    value: dict[str, object] = {}
    value["self"] = value
    value["list"] = [value]
    shared = ["twice"]
    value["shared"] = [shared, shared]
    copy = {"self": "<cycle>", "list": ["<cycle>"], "shared": [["twice"], ["twice"]]}
    assert scrubber.scrub_fields(value) == copy


def test_depth_is_bounded(scrubber: Scrubber) -> None:
    value: object = "token=abc123"
    for _ in range(100_000):
        value = [value]
    copy = json.dumps(scrubber.scrub_fields(value))
    assert "<cut>" in copy and "abc123" not in copy and len(copy) < 100


def test_the_number_of_values_is_bounded(scrubber: Scrubber) -> None:
    copy = scrubber.scrub_fields([["x"] * 1000 for _ in range(100)])
    assert isinstance(copy, list)
    assert json.dumps(copy).count('"x"') < 10_000
    assert copy[-1] == "<cut>"


def test_endless_iterables_are_not_followed(scrubber: Scrubber) -> None:
    endless = iter(lambda: 1, 2)
    assert isinstance(scrubber.scrub_fields(endless), str)


def test_texts_are_capped(scrubber: Scrubber) -> None:
    copy = scrubber.scrub_fields({"a": "word " * 10_000, "b": "short"})
    assert isinstance(copy, dict)
    assert len(copy["a"]) <= 8192 and copy["a"].endswith("<cut>") and copy["b"] == "short"
    small = scrubber.scrub_fields(["word " * 100], cap=50)
    assert isinstance(small, list) and len(small[0]) <= 50


TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["token", "key", "password", "name", "value", "--secret", "Authorization", "a=1", "x y"]),
    st.sampled_from(["token=abc123", "/home/alice/x", "<redacted>", "Bearer q7Zk39xV2mB8n1", "user:pa55word@host.org"]),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS, st.binary(max_size=12)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)


@given(VALUES)
@settings(deadline=None, max_examples=150)
def test_a_second_round_changes_nothing(value: object) -> None:
    once = scrub_fields(value)
    assert scrub_fields(once) == once
    json.dumps(once)


@given(VALUES)
@settings(deadline=None, max_examples=75)
def test_details_keep_their_structure_and_are_clean_after_one_round(value: object) -> None:
    clean, hits = scrub_details(value)
    assert skeleton(clean) == skeleton(value)
    again, more = scrub_details(clean)
    assert (again, more) == (clean, 0)
    assert (hits > 0) or clean is value


def skeleton(value: object) -> object:
    """A JSON value without its texts."""
    match value:
        case dict():
            return [skeleton(item) for item in value.values()] if len({*map(str, value)}) == len(value) else None
        case list():
            return [skeleton(item) for item in value]
        case str():
            return ""
        case _:
            return value


def test_details_lose_secrets_and_keep_paths() -> None:
    draw = random.Random(1)
    token = "gh" + "p_" + "".join(draw.choices("abcdef0123456789", k=36))
    details = {"path": "/home/alice/x", "limit": 5, "note": f"use {token}", "all": [1.5, None, token]}
    clean, hits = scrub_details(details)
    assert clean == {"path": "/home/alice/x", "limit": 5, "note": "use <redacted>", "all": [1.5, None, "<redacted>"]}
    assert hits == 2


def test_details_without_secrets_come_back_as_they_are() -> None:
    details = {"path": "/home/alice/x", "list": [1, {"a": "b"}]}
    clean, hits = scrub_details(details)
    assert clean is details and hits == 0


def test_redactions_are_counted_once_each_and_not_again_in_what_is_scrubbed() -> None:
    scrubber = Scrubber()
    fields = {"password": "hunter2", "pin": 5, "text": "api_key=sk-proj-4f9KdPq2XzLw8TmRvB7n a", "path": "/home/ada/x"}
    assert scrubber.redactions() == 0
    scrubbed = scrubber.scrub_fields({**fields, "credentials": {"user": "ada"}})
    counted = scrubber.redactions()
    assert counted == str(scrubbed).count("<redacted>") > 2
    assert scrubber.scrub_fields(scrubbed) == scrubbed
    assert scrubber.redactions() == counted
    _, found = scrubber.scrub_details({"token": "hunter2", "texts": ["password=hunter2hunter2"]})
    assert scrubber.redactions() == counted + found
