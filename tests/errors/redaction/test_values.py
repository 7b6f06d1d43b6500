"""Any value becomes a scrubbed copy, bounded and unchanged by a second round; details keep their structure. Nothing raises."""

from __future__ import annotations

import array
import collections
import dataclasses
import decimal
import enum
import json
import random
import types
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors.redaction import Scrubber, scrub_details, scrub_event, scrub_fields


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
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS, st.binary(max_size=12))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)
GRAPHS = st.recursive(
    LEAVES | st.just(float("nan")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(TEXTS, st.integers(), st.none()), inner, max_size=4),
        st.tuples(inner, inner),
        st.frozensets(LEAVES, max_size=3),
    ),
    max_leaves=12,
)


@given(GRAPHS)
@settings(max_examples=150)
def test_copies_of_any_values_are_json_and_a_second_round_changes_nothing(value: object) -> None:
    once = scrub_fields(value)
    json.dumps(once)
    assert repr(scrub_fields(once)) == repr(once)
    json.dumps(scrub_event({"field": value}))
    scrub_details(value)


@given(VALUES)
@settings(max_examples=75)
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


# -- no object makes a public function raise --------------------------------------------------------------------------

FUNCTIONS = (
    "scrub", "scrub_secrets", "scrub_name", "scrub_known", "scrub_fields", "scrub_event", "scrub_details", "scrub_exception",
    "finds_secret", "register", "unregister", "register_caller_secret", "load_environment",
)  # fmt: skip


class EvilText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError

    __len__ = __hash__ = __getitem__ = lower = strip = __eq__ = __str__  # type: ignore[assignment]


class HashableEvilText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError


class EvilMapping(dict[object, object]):
    def items(self) -> Any:
        raise RuntimeError

    __iter__ = items


class EvilList(list[object]):
    def __iter__(self) -> Any:
        raise RuntimeError


class Evil:
    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__


class Meta(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError

    @property
    def __module__(cls) -> str:  # type: ignore[override]
        raise RuntimeError


class OddlyNamed(metaclass=Meta):
    def __str__(self) -> str:
        raise RuntimeError


class OddlyNamedError(Exception, metaclass=Meta):
    pass


class EvilError(Exception):
    def __str__(self) -> str:
        raise RuntimeError

    @property
    def __notes__(self) -> list[str]:
        raise RuntimeError


class SaysItIsText:
    __class__ = property(lambda _: str)  # type: ignore[assignment]


class SaysItIsAMapping:
    __class__ = property(lambda _: dict)  # type: ignore[assignment]


class EvilStr:
    def __str__(self) -> str:
        return HashableEvilText("password=abc12345")


class Endless:
    def __str__(self) -> str:
        return str(self)


class OddFields:
    __struct_fields__ = ("a", 3, HashableEvilText("z"))


def released() -> memoryview:
    view = memoryview(b"abc")
    view.release()
    return view


def nested() -> object:
    value: object = 1
    for _ in range(5000):
        value = [value]
    return value


def of_itself() -> object:
    value: dict[str, object] = {}
    value["x"] = value
    return value


def error_of_itself() -> Exception:
    error = EvilError("x")
    error.__cause__ = error
    return error


OBJECTS: dict[str, Callable[[], object]] = {
    "None": lambda: None, "number": lambda: 1, "long number": lambda: 10**5000, "not a number": lambda: float("nan"),
    "surrogate": lambda: "\ud800", "bytes": lambda: b"\xff", "released view": released,
    "view of numbers": lambda: memoryview(array.array("d", [1.0])), "evil text": lambda: EvilText("password=abc123"),
    "evil mapping": lambda: EvilMapping(a=1), "evil list": lambda: EvilList([1]), "evil object": Evil, "oddly named": OddlyNamed,
    "oddly named error": lambda: OddlyNamedError("x"), "error of itself": error_of_itself, "no text": SaysItIsText,
    "no mapping": SaysItIsAMapping, "evil result": EvilStr, "endless": Endless, "odd fields": OddFields, "nested": nested,
    "of itself": of_itself, "number as a key": lambda: {1: "x"}, "None as a key": lambda: {None: 1}, "tuple as a key": lambda: {(1, 2): 3},
    "bytes as a key": lambda: {b"k": 1}, "evil key": lambda: {HashableEvilText("token"): "x"}, "object as a key": lambda: {Evil(): 1},
    "class": lambda: Evil, "oddly named class": lambda: OddlyNamed, "generator": lambda: (1 // (1 - number) for number in range(2)),
    "record": lambda: dataclasses.make_dataclass("D", ["a"])(Evil()), "namespace": lambda: types.SimpleNamespace(a=Evil()),
    "decimal": lambda: decimal.Decimal("NaN"), "user mapping": lambda: collections.UserDict({1: 2}),
    "proxy": lambda: types.MappingProxyType({1: 2}), "range": lambda: range(10**9), "group": lambda: ExceptionGroup("x", [EvilError()]),
    "ellipsis": lambda: ..., "function": lambda: nested,
}  # fmt: skip


@pytest.mark.parametrize("kind", OBJECTS)
def test_no_object_makes_a_function_raise(kind: str) -> None:
    scrubber = Scrubber()
    for function in FUNCTIONS:
        for value in (OBJECTS[kind](), [OBJECTS[kind]()], {"password": OBJECTS[kind]()}, {"a": OBJECTS[kind]()}):
            getattr(scrubber, function)(value)


def test_what_is_no_mapping_is_one_field_of_an_event(scrubber: Scrubber) -> None:
    assert scrubber.scrub_event({1: "x", None: "y"}) == {"1": "x", "": "y"}  # type: ignore[dict-item]
    assert scrubber.scrub_event("token=abc123def") == {"value": "token=<redacted>"}  # type: ignore[arg-type]
    assert scrubber.scrub_event(None) == {}  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [
    {"password": {"v": "Willow-Hollow"}}, {"credentials": {"user": "svc", "value": "opensesame"}},
    {"secrets": [{"v": "opensesame"}, ["opensesame"]]}, {"pass": "Willow-Hollow-86"}, {"user": "svc", "pass": "Willow-Hollow-86"},
    {"a": [{"password": {"b": {"c": ["Willow-Hollow"]}}}]},
])  # fmt: skip
def test_a_name_covers_what_is_nested_below_it(scrubber: Scrubber, value: dict[str, object]) -> None:
    for scrubbed in (scrubber.scrub_fields(value), scrubber.scrub_event(value), scrubber.scrub_details(value)[0]):
        shown = json.dumps(scrubbed)
        assert "Hollow" not in shown and "opensesame" not in shown
