"""What counts as a breaking change, case by case."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional

import msgspec
import pytest
from msgspec import Meta

from discreet import OperationError, Service
from discreet.compatibility.changes import additions, breaking_changes
from discreet.compatibility.subschema import incompatibilities
from discreet.schemas.documents import Snapshot, read_snapshot, snapshot, snapshot_text
from discreet.schemas.json_schema import json_schema


def made(name: str, *fields: Any, **options: Any) -> Any:
    return msgspec.defstruct(name, fields, kw_only=True, **options)


A = made("A", ("a", int))
A_OPTIONAL = made("A", ("a", int, 1))
A_TEXT = made("A", ("a", str))
AB = made("A", ("a", int), ("b", int))
AB_OPTIONAL = made("A", ("a", int), ("b", int, 1))
A_CLOSED = made("A", ("a", int), forbid_unknown_fields=True)
AB_CLOSED = made("A", ("a", int), ("b", int, 1), forbid_unknown_fields=True)
X, Y, Z = (made(name, ("n", int), tag=True) for name in "XYZ")
Y_TEXT = made("Y", ("n", str), tag=True)
SLOTS = made("S", ("a", int), array_like=True)
SLOTS_MORE = made("S", ("a", int), ("b", int, 1), array_like=True)
SLOTS_CLOSED = made("S", ("a", int), array_like=True, forbid_unknown_fields=True)


class Tree(msgspec.Struct):
    n: int
    below: list[Tree] = []


class WiderTree(msgspec.Struct):
    n: int | None
    below: list[WiderTree] = []


def bounded(**limits: Any) -> Any:
    return Annotated[int, Meta(**limits)]


def text(**limits: Any) -> Any:
    return Annotated[str, Meta(**limits)]


SAME = [
    # two ways to write one set of values
    (bounded(gt=0), bounded(ge=1)),
    (bounded(lt=5), bounded(le=4)),
    (bounded(gt=0, multiple_of=5), bounded(ge=5, multiple_of=5)),
    (bounded(multiple_of=1), int),
    (bounded(ge=1, le=3), Literal[1, 2, 3]),
    (bounded(gt=0, lt=2), Literal[1]),
    (Literal["a", "b"], Literal["b", "a"]),
    (Literal[True, False], bool),
    (int | str, str | int),
    (X | Y, Y | X),
    (text(min_length=0), str),
    (Annotated[list[int], Meta(min_length=0)], list[int]),
    (Annotated[float, Meta(multiple_of=0.5)], Annotated[float, Meta(multiple_of=0.50)]),
    (tuple[int, int], Annotated[list[int], Meta(min_length=2, max_length=2)]),
    (tuple[int, ...], frozenset[int]),
    (Annotated[int, Meta(title="t", description="d", examples=[1])], int),
]

WIDER = [
    # what takes less, what takes more, and the first path at which the step back is seen
    (int, float, ""),
    (int, int | None, ""),
    (int, Any, ""),
    (bool, Literal["a"] | bool, ""),
    (Literal["a"], Literal["a", "b"], ""),
    (Literal["a", None], Optional[str], ""),  # noqa: UP045 - as users write it
    (Literal["ab"], text(min_length=2), ""),
    (Literal["ab"], text(pattern="^a"), ""),
    (Literal[4], bounded(ge=4, multiple_of=2), ""),
    (Literal[1], float, ""),
    (bounded(ge=2), bounded(ge=1), ""),
    (bounded(gt=1), bounded(ge=1), ""),
    (bounded(gt=0), bounded(gt=-1), ""),
    (bounded(ge=1, le=4), Literal[1, 2, 3, 4, 5], ""),
    (bounded(), Annotated[float, Meta(multiple_of=0.5)], ""),
    (Annotated[float, Meta(gt=0)], Annotated[float, Meta(ge=0)], ""),
    (bounded(le=2), int, ""),
    (bounded(lt=2), bounded(le=2), ""),
    (bounded(multiple_of=4), bounded(multiple_of=2), ""),
    (text(min_length=2), text(min_length=1), ""),
    (text(max_length=2), str, ""),
    (text(pattern="a"), str, ""),
    (datetime.date, str, ""),
    (bytes, str, ""),
    (list[int], list[int | None], "[]"),
    (list[int], list[Any], "[]"),
    (Annotated[list[int], Meta(max_length=3)], list[int], ""),
    (Annotated[list[int], Meta(min_length=1)], list[int], ""),
    (tuple[int, int], list[int], ""),
    (tuple[int, str], tuple[float, str], "[0]"),
    (dict[str, int], dict[str, float], ".*"),
    (dict[int, int], dict[str, int], ".*"),
    (dict[Literal["a"], int], dict[str, int], ".*"),
    (X | Y, X | Y | Z, ".type"),
    (A, A_OPTIONAL, ".a"),
    (list[A], list[A_OPTIONAL], "[].a"),
    (Tree, WiderTree, ".below[].n"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_another_way_to_write_the_same_set_breaks_nothing(one: Any, other: Any) -> None:
    for old, new in ((one, other), (other, one)):
        for direction in ("sent", "received"):
            assert incompatibilities(json_schema(old), json_schema(new), direction) == []


def test_a_constant_is_a_list_of_one() -> None:
    for old, new in (({"const": "a"}, {"enum": ["a"]}), ({"enum": ["a"]}, {"const": "a", "type": "string"})):
        assert incompatibilities(old, new, "sent") == incompatibilities(old, new, "received") == []
    assert incompatibilities({"const": "a"}, {"const": "b"}, "sent") != []


@pytest.mark.parametrize(("narrow", "wide", "path"), WIDER)
def test_what_takes_more_breaks_those_who_receive_and_what_takes_less_those_who_send(
    narrow: Any, wide: Any, path: str
) -> None:
    less, more = json_schema(narrow), json_schema(wide)
    assert incompatibilities(less, more, "sent") == incompatibilities(more, less, "received") == []
    for found in (incompatibilities(less, more, "received"), incompatibilities(more, less, "sent")):
        assert path in {one.path for one in found}


@pytest.mark.parametrize(
    ("old", "new", "sent", "received"),
    [
        (A, AB_OPTIONAL, [], []),
        (A, AB, [".b: is required"], []),
        (AB_OPTIONAL, A, [".b: is ignored"], []),
        (AB, A, [".b: is ignored"], [".b: may be missing"]),
        (A, A_TEXT, [".a: integer is refused"], [".a: string may be received"]),
        (A, A_CLOSED, [".*: was ignored, is refused"], []),
        (A_CLOSED, A, [], []),
        (A_CLOSED, AB_CLOSED, [], [".b: may be received"]),
        (AB_CLOSED, A_CLOSED, [".b: is refused"], []),
        (X | Y, X | Y_TEXT, [".n: integer is refused"], [".n: string may be received"]),
        (SLOTS, SLOTS_MORE, [], []),
        (SLOTS_MORE, SLOTS, ["[1]: is ignored"], []),
        (SLOTS, SLOTS_CLOSED, ["[]: was ignored, is refused"], []),
        (bounded(ge=1, le=9), bounded(ge=2, le=10), ["minimum was 1, is 2"], ["maximum was 9, is 10"]),
        (text(pattern="a"), text(pattern="[a]"), ['pattern was "a", is "[a]"'], ['pattern was "a", is "[a]"']),
        (
            text(pattern="a++"),
            text(pattern="b++"),
            ["x-python-pattern can't be compared"],
            ["x-python-pattern can't be compared"],
        ),
        (Literal["a", "b"], Literal["b", "c"], ['"a" is refused'], ['"c" may be received']),
        (Literal["a"], Literal["a", 1], [], ["1 may be received"]),
        (Literal[1], bool, ["1 is refused"], ["false may be received", "true may be received"]),
    ],
)
def test_each_change_is_told_in_one_line(old: Any, new: Any, sent: list[str], received: list[str]) -> None:
    def lines(flow: Literal["sent", "received"]) -> list[str]:
        found = incompatibilities(json_schema(old), json_schema(new), flow)
        return sorted(f"{one.path}: {one.what}" if one.path else one.what for one in found)

    assert lines("sent") == sent
    assert lines("received") == received


def test_a_keyword_that_is_not_ours_can_t_be_compared_unless_it_stays_as_it_is() -> None:
    plain = json_schema(int)
    one, other = plain | {"not": {"const": 1}}, plain | {"not": {"const": 2}}
    assert incompatibilities(one, one, "sent") == incompatibilities(one, one, "received") == []
    assert [found.what for found in incompatibilities(one, other, "sent")] == ["not can't be compared"]
    assert [found.what for found in incompatibilities(plain, one, "sent")] == ["not can't be compared"]
    assert incompatibilities(one, plain, "sent") == []


def test_shared_types_are_compared_once_each() -> None:
    """Each level names the one below it twice: 2 to the 40th comparisons if each were made anew."""
    level = A
    for number in range(40):
        level = made(f"L{number}", ("one", level), ("two", level))
    assert incompatibilities(json_schema(level), json_schema(level), "sent") == []


# -- operations ----------------------------------------------------------------------------------------------------


class Gone(OperationError, code="GONE", http_status=410):
    """It is gone."""


class GoneWithFacts(OperationError, code="GONE", http_status=410):
    """It is gone."""

    path: str


class GoneOtherwise(OperationError, code="GONE", http_status=404, retryable=True):
    """It has left."""


def one(a: int, b: str = "") -> int: ...  # type: ignore[empty-body]


def more_at_the_end(a: int, b: str = "", c: int = 0) -> int: ...  # type: ignore[empty-body]


def more_in_between(a: int, c: int = 0, b: str = "") -> int: ...  # type: ignore[empty-body]


def less(a: int) -> int: ...  # type: ignore[empty-body]


def other_result(a: int, b: str = "") -> str: ...  # type: ignore[empty-body]


def the_snapshot(func: Callable[..., Any], kind: str = "query", **options: Any) -> Snapshot:
    service = Service("s")
    getattr(service, kind)(name="op", **options)(func)
    return read_snapshot(snapshot_text(snapshot(service.operations)))


EMPTY = Snapshot(1, {})


@pytest.mark.parametrize(
    ("old", "new", "broken", "added"),
    [
        (the_snapshot(one), the_snapshot(one), [], []),
        (the_snapshot(one), the_snapshot(one, description="In other words.", timeout=1), [], []),
        (EMPTY, the_snapshot(one), [], ["s/op: is new"]),
        (the_snapshot(one), EMPTY, ["s/op: is gone"], []),
        (the_snapshot(one), the_snapshot(one, visibility="internal"), ["s/op: is gone"], []),
        (the_snapshot(one), the_snapshot(one, "mutation"), ["s/op: was a query, is a mutation"], []),
        (the_snapshot(one), the_snapshot(more_at_the_end), [], ["s/op input.c: is new"]),
        (
            the_snapshot(one),
            the_snapshot(more_in_between),
            ["s/op input: another position for b"],
            ["s/op input.c: is new"],
        ),
        (the_snapshot(one), the_snapshot(less), ["s/op input.b: is refused"], []),
        (the_snapshot(one), the_snapshot(other_result), ["s/op output: string may be received"], []),
        (the_snapshot(one, errors=[Gone]), the_snapshot(one), ["s/op errors.GONE: is gone"], []),
        (the_snapshot(one), the_snapshot(one, errors=[Gone]), [], ["s/op errors.GONE: is new"]),
        (the_snapshot(one, errors=[Gone]), the_snapshot(one, errors=[GoneWithFacts]), [], []),
        (
            the_snapshot(one, errors=[GoneWithFacts]),
            the_snapshot(one, errors=[Gone]),
            ["s/op errors.GONE: no longer has details"],
            [],
        ),
        (
            the_snapshot(one, errors=[Gone]),
            the_snapshot(one, errors=[GoneOtherwise]),
            ["s/op errors.GONE: httpStatus was 410, is 404", "s/op errors.GONE: retryable was false, is true"],
            [],
        ),
        (the_snapshot(one), the_snapshot(one, scopes=["r"]), ["s/op access: requires the scope r"], []),
        (the_snapshot(one, scopes=["r"]), the_snapshot(one), [], []),
        (the_snapshot(one, any_scope=["r"]), the_snapshot(one, scopes=["r"]), [], []),
        (the_snapshot(one, scopes=["r"]), the_snapshot(one, any_scope=["r", "w"]), [], []),
        (the_snapshot(one, any_scope=["r"]), the_snapshot(one, any_scope=["r", "w"]), [], []),
        (
            the_snapshot(one, any_scope=["r", "w"]),
            the_snapshot(one, any_scope=["r"]),
            ["s/op access: requires one of the scopes r"],
            [],
        ),
    ],
)
def test_what_breaks_callers_of_an_operation(old: Snapshot, new: Snapshot, broken: list[str], added: list[str]) -> None:
    assert list(map(str, breaking_changes(old, new))) == broken
    assert list(map(str, additions(old, new))) == added
