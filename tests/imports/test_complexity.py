"""Schemas that make much work of few bytes are recognised, and those that only look so are not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from discreet.imports.model import ImportFailed
from discreet.imports.validation import Checker
from support import hostile_schemas


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def group(word: str) -> dict[str, Any]:
    return {"type": "object", "properties": {word: {"type": "array", "items": ref("Filter")}}}


FILTER: dict[str, Any] = {
    **ref("Filter"),
    "$defs": {
        "Filter": {
            "oneOf": [
                {**group("and"), "required": ["and"]},
                {**group("or"), "required": ["or"]},
                {"$ref": "#/$defs/Leaf"},
            ]
        },
        "Leaf": {"type": "object", "properties": {"value": {"type": "integer"}}, "required": ["value"]},
    },
}
TREES = [
    {**ref("Node"), "$defs": {"Node": {"type": "object", "properties": {"next": {"anyOf": [ref("Node"), {"type": "null"}]}}}}},
    {**ref("Any"), "$defs": {"Any": {"anyOf": [{"type": "string"}, {"type": "array", "items": ref("Any")},
     {"type": "object", "additionalProperties": ref("Any")}]}}},
]  # fmt: skip


@pytest.mark.parametrize("levels", [2, 7, 20, 400])
def test_params_of_an_ambiguous_type_are_refused_however_deep_they_are(levels: int) -> None:
    value: Any = {"value": "wrong"}
    for _ in range(levels):
        value = {"and": [value]}
    assert Checker(FILTER).fault(value) is not None


@pytest.mark.parametrize("schema", TREES, ids=["nullable", "json"])
def test_recursive_types_are_checked_at_every_depth(schema: Any) -> None:
    value: Any = {}
    for _ in range(400):
        value = {"next": value}
    assert Checker(schema).fault(value) is None
    assert Checker({**schema, "type": "object"}).fault([]) is not None


def doubling(level: Callable[[Any], Any], levels: int) -> dict[str, Any]:
    """Levels of schemas, each of which is made of the next."""
    definitions = {f"L{at}": level(ref(f"L{at + 1}")) for at in range(levels)}
    return {"$defs": {**definitions, f"L{levels}": {"type": "string"}}, **ref("L0")}


def nested(levels: int, around: Callable[[Any], Any]) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = around(value)
    return value


IN_PLACE = {
    "alternatives": lambda r: {"anyOf": [r, r]},
    "all": lambda r: {"allOf": [r, r]},
    "conditions": lambda r: {"if": r, "then": r, "else": r},
    "dependent": lambda r: {"dependentSchemas": {"a": r, "b": r}},
    "unevaluated properties": lambda r: {"allOf": [r], "unevaluatedProperties": False},
    "unevaluated items": lambda r: {**r, "unevaluatedItems": False},
    "not": lambda r: {"not": {"anyOf": [r, r]}},
}
OF_PARTS = {
    "patterns": (lambda r: {"properties": {"a": r}, "patternProperties": {"a": r}}, lambda value: {"a": value}),
    "several patterns": (lambda r: {"patternProperties": {"a": r, "^a": r}}, lambda value: {"a": value}),
    "unevaluated": (
        lambda r: {"unevaluatedProperties": r, "anyOf": [{"patternProperties": {"a": r}}]},
        lambda value: {"a": value},
    ),
    "contains": (lambda r: {"items": r, "contains": r}, lambda value: [value]),
    "prefixes": (lambda r: {"prefixItems": [r], "contains": r}, lambda value: [value]),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_schemas_that_double_the_work_for_one_value_are_refused(name: str) -> None:
    assert Checker(doubling(IN_PLACE[name], 6)).fault("") is None or name == "not"
    with pytest.raises(ImportFailed):
        Checker(doubling(IN_PLACE[name], 40))


@pytest.mark.parametrize("name", OF_PARTS)
def test_values_for_which_the_work_doubles_with_each_level_are_refused(name: str) -> None:
    level, around = OF_PARTS[name]
    few = Checker(doubling(level, 4)).fault(nested(4, around))
    assert few is not None and few.keyword != "complexity"
    many = Checker(doubling(level, 60))
    assert (fault := many.fault(nested(60, around))) is not None and fault.keyword == "complexity"
    assert many.fault({"b": 1} if name != "unevaluated" else 1) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"A": {"allOf": [ref("A")]}}, **ref("A")},
        {"anyOf": [{"$ref": "#"}, {"type": "string"}]},
        {"$ref": "http://127.0.0.1:1/schema"},
        {"$ref": "#/$defs/absent"},
        {"$id": "http://a.example/", "type": "object"},
        {"patternProperties": {"(": True}},
        doubling(lambda r: r, 10_000),
    ],
    ids=["circle", "root", "outside", "nowhere", "id", "pattern", "chain"],
)
def test_schemas_that_can_not_be_followed_are_refused(schema: Any) -> None:
    with pytest.raises(ImportFailed):
        Checker(schema)


def test_a_value_whose_check_would_overflow_the_native_stack_is_refused() -> None:
    chain = doubling(lambda r: {"allOf": [r]}, 150)
    chain["$defs"]["L150"] = {"type": "array", "items": ref("L0")}
    assert (fault := Checker(chain).fault(nested(250, lambda value: [value]))) is not None
    assert fault.keyword == "complexity"


def test_large_values_of_common_schemas_are_checked() -> None:
    kinds = [
        {
            "type": "object",
            "properties": {"type": {"const": f"k{at}"}, "children": {"type": "array", "items": ref("Block")}},
        }
        for at in range(40)
    ]
    schema = {"type": "array", "items": ref("Block"), "$defs": {"Block": {"oneOf": kinds}}}
    blocks = [{"type": f"k{at % 40}", "children": [{"type": "k1"}] * 5} for at in range(2000)]
    checker = Checker(schema)
    assert checker.fault(blocks) is None
    assert checker.fault([*blocks, {"type": "k"}]) is not None


def test_no_schema_keeps_the_checker_busy_for_a_small_value() -> None:
    """Each of these schemas has all its values checked, or is refused, within a few seconds of a processor and 2 GB."""
    program = [sys.executable, "-P", hostile_schemas.__file__, "0", "250"]
    paths = os.pathsep.join(sys.path)
    done = subprocess.run(program, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"seed {lines[-1]}: {done.stderr[-500:]}"
    assert int(lines[-1].removeprefix("checked ")) > 1_500
