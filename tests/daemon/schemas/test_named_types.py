"""The named types of a document."""

from __future__ import annotations

from typing import Any

import pytest

from discreet.schemas.named_types import NamedTypes


def row(count: int, last: Any) -> dict[str, Any]:
    """A schema whose types refer to the next one each."""
    types: dict[str, Any] = {f"T{n}": {"properties": {"next": {"$ref": f"#/$defs/T{n + 1}"}}} for n in range(count - 1)}
    return {"$ref": "#/$defs/T0", "$defs": {**types, f"T{count - 1}": last}}


@pytest.mark.parametrize("last", [{"type": "null"}, {"properties": {"next": {"$ref": "#/$defs/T0"}}}])
def test_types_may_refer_to_each_other_in_a_long_row(last: Any) -> None:
    types = NamedTypes()
    assert types.include(row(2000, last)) == {"$ref": "#/components/schemas/T0"}
    assert len(types.schemas) == 2000
    assert types.schemas["T1998"] == {"properties": {"next": {"$ref": "#/components/schemas/T1999"}}}


def test_types_are_the_same_only_if_all_that_they_refer_to_is() -> None:
    types = NamedTypes()
    for last in ({"type": "null"}, {"type": "string"}, {"type": "null"}):
        types.include(row(3, last))
    assert list(types.schemas) == ["T0", "T1", "T2", "T0_2", "T1_2", "T2_2"]
    assert types.schemas["T1_2"] == {"properties": {"next": {"$ref": "#/components/schemas/T2_2"}}}


def test_types_on_one_circle_are_each_written_once() -> None:
    types = NamedTypes()
    circle = row(3, {"properties": {"next": {"$ref": "#/$defs/T0"}}})
    for _ in range(2):
        types.include(circle)
    assert list(types.schemas) == ["T0", "T1", "T2"]
