"""Long results: what is not walked because it is plain, and what is refused all the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any

import pytest
from msgspec import Meta, Raw

from discreet import Service
from discreet.daemon.memory import SMALL
from discreet.daemon.operations.params import build_input
from discreet.daemon.operations.spec import is_plain

LONG = "x" * (SMALL + 1)
BROKEN = Raw(b"1],[2")


class Text(str):
    """No plain text: apps may give it an encoder."""

    __slots__ = ()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("returns", "result", "fits"),
    [
        (str, LONG, True),
        (dict[str, Any], {"a": LONG, "b": 1, "c": None, "d": True}, True),
        (list[Any], [LONG, 1, None], True),
        (Any, {"a": LONG, "b": [1.5]}, True),
        (Any, {"a": LONG, "b": math.nan}, False),
        (dict[str, Any], {"a": LONG, "b": [math.inf]}, False),
        (list[Any], [LONG, {"a": BROKEN}], False),
        (dict[str, Any], [LONG], False),
        (list[Any], {"a": LONG}, False),
        (int, LONG, False),
        (Annotated[str, Meta(max_length=9)], LONG, False),
    ],
)
async def test_a_long_result_is_checked_as_a_short_one(
    serving: Callable[..., AbstractAsyncContextManager[Any]], returns: Any, result: Any, fits: bool
) -> None:
    service = Service("")

    def give():  # type: ignore[no-untyped-def]  # noqa: ANN202
        return result

    give.__annotations__ = {"return": returns}
    service.query(give)
    async with serving(service) as wire:
        reply = await wire.call("give")
    assert reply.get("result") == (result if fits else None)
    assert ("error" in reply) is not fits


@pytest.mark.parametrize("result", [Text(LONG), [Text(LONG)], {"a": 1.5}, [[]], (LONG,), BROKEN])
def test_nothing_else_is_taken_for_plain(result: object) -> None:
    assert not is_plain(result, Any)


def test_only_inputs_of_any_members_take_all_of_them() -> None:
    def none() -> None: ...
    def named(value: str) -> None: ...
    def named_and_extra(value: str, **more: Any) -> None: ...
    def numbers(**numbers: int) -> None: ...
    def whole(params: dict[str, Any], /) -> None: ...
    def all_members(**params: Any) -> None: ...

    inputs = [build_input(func) for func in (none, named, named_and_extra, numbers, whole, all_members)]
    assert [each.takes_all for each in inputs] == [False, False, False, False, False, True]
