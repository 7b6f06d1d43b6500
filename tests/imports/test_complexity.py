"""Schemas that make much work of few bytes are recognised, and those that only look so are not."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.daemon.imports.complexity import is_ambiguous, too_many_alternatives
from discreet.daemon.imports.failures import ImportFailed
from discreet.daemon.imports.validation import Checker


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
    assert is_ambiguous(FILTER)
    value: Any = {"value": "wrong"}
    for _ in range(levels):
        value = {"and": [value]}
    assert Checker(FILTER).fault(value) is not None


@pytest.mark.parametrize("schema", TREES, ids=["nullable", "json"])
def test_other_recursive_types_are_checked_at_every_depth(schema: Any) -> None:
    assert not is_ambiguous(schema)
    value: Any = {}
    for _ in range(100):
        value = {"next": value}
    assert Checker(schema).fault(value) is None
    assert Checker({**schema, "type": "object"}).fault([]) is not None


def test_alternatives_of_alternatives_are_counted() -> None:
    definitions: dict[str, Any] = {f"L{n}": {"anyOf": [ref(f"L{n + 1}"), ref(f"L{n + 1}")]} for n in range(40)}
    definitions["L40"] = {"type": "string"}
    bomb = {"type": "object", "properties": {"body": ref("L0")}, "$defs": definitions}
    assert too_many_alternatives(bomb)
    with pytest.raises(ImportFailed):
        Checker(bomb)
    few = {"properties": {"body": ref("L34")}, "$defs": definitions}
    assert not too_many_alternatives({**few, "$defs": {k: v for k, v in definitions.items() if int(k[1:]) > 33}})
