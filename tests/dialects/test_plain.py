"""The methods of the daemon itself: what they take, and what they say where a param is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

import pytest

from discreet import Service
from discreet.daemon.logs import log

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]


@pytest.fixture(autouse=True)
def _same_level() -> Iterator[None]:
    level = log.level
    yield
    log.set_level(level)


@pytest.mark.parametrize(
    ("level", "received"),
    [
        (5, "number"),
        (None, "null"),
        (["info"], "array"),
        ("loud", "loud"),
        (" info ", "string"),
        ("info\n", "string"),
        ("", "string"),
    ],
)
async def test_a_wrong_log_level_is_refused_with_the_list_of_levels(
    serving: Serving, level: object, received: str
) -> None:
    before = log.level
    async with serving(Service("shop")) as wire:
        error = (await wire.call("setLogLevel", {"level": level}))["error"]
    assert (error["code"], log.level) == (-32602, before)
    assert error["data"] == {
        "param": "level",
        "expected": "one of",
        "received": received,
        "accepted": ["debug", "info", "warn", "error"],
    }


@pytest.mark.parametrize(
    ("given", "level"), [("debug", "debug"), ("INFO", "info"), ("Warning", "warn"), ("eRRor", "error")]
)
async def test_a_log_level_is_taken_in_any_case(serving: Serving, given: str, level: str) -> None:
    async with serving(Service("shop")) as wire:
        assert (await wire.call("setLogLevel", {"level": given}))["result"] == {"level": level, "success": True}
        assert log.level == level


async def test_people_are_told_what_a_param_takes(serving: Serving) -> None:
    service = Service("shop")

    @service.query()
    def price(size: Literal["small", 1] = 1, count: int = 1) -> Literal[True]:
        return True

    async with serving(service) as wire:
        described = {method["name"]: method for method in (await wire.call("describeMethods"))["result"]}
    assert described["setLogLevel"]["params"] == ["level: string"]
    assert described["shop/price"]["params"] == ["size?: one of 1, small", "count?: integer"]
    assert described["shop/price"]["returns"] == "one of true"
