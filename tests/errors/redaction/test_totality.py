"""No object makes a public function raise: not one that lies about its class, raises in every method, or holds itself."""

from __future__ import annotations

import array
import collections
import dataclasses
import decimal
import json
import types
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors.redaction import Scrubber

SCRUBBER = Scrubber()
FUNCTIONS: dict[str, Callable[[Any], object]] = {
    name: getattr(SCRUBBER, name)
    for name in (
        "scrub", "scrub_secrets", "scrub_name", "scrub_known", "scrub_fields", "scrub_event", "scrub_details",
        "scrub_exception", "finds_secret", "register", "unregister", "register_caller_secret", "load_environment",
    )
}  # fmt: skip


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
@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_object_makes_a_function_raise(function: str, kind: str) -> None:
    for value in (OBJECTS[kind](), [OBJECTS[kind]()], {"password": OBJECTS[kind]()}, {"a": OBJECTS[kind]()}):
        FUNCTIONS[function](value)


def test_what_is_no_mapping_is_one_field_of_an_event() -> None:
    assert SCRUBBER.scrub_event({1: "x", None: "y"}) == {"1": "x", "": "y"}  # type: ignore[dict-item]
    assert SCRUBBER.scrub_event("token=abc123def") == {"value": "token=<redacted>"}  # type: ignore[arg-type]
    assert SCRUBBER.scrub_event(None) == {}  # type: ignore[arg-type]


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.binary(max_size=20))
KEYS = st.one_of(
    st.sampled_from(["password", "name", "value", "credentials"]), st.integers(), st.none(), st.text(max_size=8)
)
GRAPHS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4), st.tuples(inner, inner), st.frozensets(LEAVES, max_size=3)
    ),
    max_leaves=12,
)  # fmt: skip


@given(GRAPHS)
@settings(deadline=None, max_examples=150)
def test_copies_of_any_values_are_json_and_stay(value: object) -> None:
    once = SCRUBBER.scrub_fields(value)
    json.dumps(once)
    assert repr(SCRUBBER.scrub_fields(once)) == repr(once)
    json.dumps(SCRUBBER.scrub_event({"field": value}))
    SCRUBBER.scrub_details(value)


@pytest.mark.parametrize("value", [
    {"password": {"v": "Willow-Hollow"}}, {"credentials": {"user": "svc", "value": "opensesame"}},
    {"secrets": [{"v": "opensesame"}, ["opensesame"]]}, {"pass": "Willow-Hollow-86"}, {"user": "svc", "pass": "Willow-Hollow-86"},
    {"a": [{"password": {"b": {"c": ["Willow-Hollow"]}}}]},
])  # fmt: skip
def test_a_name_covers_what_is_nested_below_it(value: dict[str, object]) -> None:
    for scrubbed in (SCRUBBER.scrub_fields(value), SCRUBBER.scrub_event(value), SCRUBBER.scrub_details(value)[0]):
        shown = json.dumps(scrubbed)
        assert "Hollow" not in shown and "opensesame" not in shown
