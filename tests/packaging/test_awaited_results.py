"""Coroutines whose results people test for truth refuse that before they are awaited."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

import discreet
import discreet.acp
import discreet.agents
import discreet.client
import discreet.lsp
import discreet.mcp
from discreet.awaited import MARK, refuses_bool
from discreet.dialects.acp.editor import TurnEditor

MODULES = (discreet, discreet.acp, discreet.agents, discreet.client, discreet.mcp)
IMPLEMENTED_BY_USERS_OR_STORES = ("TaskStore", "EventLog", "Interceptor")
WRITTEN_ELSEWHERE = {discreet.acp.Editor: TurnEditor}
"""Protocols, by what has their methods."""


def methods() -> Iterator[tuple[str, Any]]:
    classes = {getattr(module, name) for module in MODULES for name in module.__all__} | {discreet.lsp.Editor}
    for cls in sorted(
        (each for each in classes if inspect.isclass(each)), key=lambda each: (each.__qualname__, each.__module__)
    ):
        if cls.__name__ in IMPLEMENTED_BY_USERS_OR_STORES:
            continue
        for name in vars(cls):
            method = inspect.unwrap(vars(cls)[name]) if callable(vars(cls)[name]) else None
            if not name.startswith("_") and inspect.iscoroutinefunction(method):
                yield f"{cls.__name__}.{name}", getattr(WRITTEN_ELSEWHERE.get(cls, cls), name)


def is_asked_for_truth(method: Any) -> bool:
    """Whether the result may be false: a bool, a value with truth of its own, None, or anything."""
    returns = get_type_hints(inspect.unwrap(method), vars(inspect.getmodule(inspect.unwrap(method)))).get("return")
    if get_origin(returns) in (Union, types.UnionType):
        return type(None) in get_args(returns)
    return returns in (bool, Any) or (hasattr(returns, "__bool__") and returns is not type(None))


@pytest.mark.parametrize(("name", "method"), [pytest.param(*each, id=each[0]) for each in methods()])
def test_a_result_that_may_be_false_refuses_bool_before_it_is_awaited(name: str, method: Any) -> None:
    try:
        asked = is_asked_for_truth(method)
    except NameError:  # a type that only checkers import; told by its text
        asked = str(inspect.unwrap(method).__annotations__["return"]) in ("bool", "Permission") or "| None" in str(
            inspect.unwrap(method).__annotations__["return"]
        )
    assert hasattr(method, MARK) or not asked, name


@pytest.mark.anyio
async def test_what_refuses_bool_is_awaited_like_any_other_coroutine() -> None:
    @refuses_bool
    async def permitted() -> bool:
        return False

    assert await permitted() is False
    with pytest.raises(TypeError, match="await permitted"):
        bool(permitted())
