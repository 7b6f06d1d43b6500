"""Who may call what, and who is told of it: scopes and visibility."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from discreet import Identity, Service
from discreet.daemon.hosting import access_of
from discreet.daemon.operations.access import PARENT, AccessRule
from discreet.daemon.settings import Settings
from support.vault import ALL, LACKING, NOT_FOUND, vault

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]


SCOPES = ["a", "b", "c"]


def subsets() -> list[frozenset[str]]:
    return [frozenset(some) for size in range(4) for some in itertools.combinations(SCOPES, size)]


@pytest.mark.parametrize("all_of", subsets())
def test_a_rule_asks_for_all_of_some_scopes_and_any_of_others(all_of: frozenset[str]) -> None:
    for any_of in subsets():
        rule = AccessRule(all_of, any_of)
        for held in subsets():
            wanted = all(s in held for s in all_of) and (not any_of or any(s in held for s in any_of))
            assert rule.allows(Identity("x", held)) == wanted
        assert rule.allows(PARENT)
        assert rule.allows(None) == (not all_of and not any_of)


CASES = [
    (None, {"open_", "both", "either", "mixed"}),
    ((), {"open_"}),
    (("read",), {"open_", "either"}),
    (("list",), {"open_"}),
    (("read", "list"), {"open_", "both", "either", "mixed"}),
    (("admin",), {"open_", "either"}),
    (("admin", "read"), {"open_", "either", "mixed"}),
]


@pytest.mark.parametrize(("scopes", "allowed"), CASES)
async def test_the_parent_has_the_scopes_that_the_setting_gives(
    scopes: tuple[str, ...] | None, allowed: set[str], serving: Serving
) -> None:
    async with serving(vault(), access=access_of(Settings(scopes=scopes))) as wire:
        for name in ("open_", "both", "either", "mixed"):
            reply = await wire.call(f"vault/{name}")
            assert ("result" in reply) == (name in allowed), name
            assert "result" in reply or reply["error"] == LACKING


async def test_access_is_checked_after_lookup_and_before_input(serving: Serving) -> None:
    async with serving(vault(), access=access_of(Settings(scopes=()))) as wire:
        wrong = {"n": "no number", "surplus": 1}
        assert (await wire.call("vault/none", wrong))["error"] == NOT_FOUND
        assert (await wire.call("vault/hidden", wrong))["error"] == NOT_FOUND
        for name in ("both", "either", "mixed"):
            assert (await wire.call(f"vault/{name}", wrong))["error"] == LACKING
        assert (await wire.call("vault/open_", wrong))["error"]["code"] == -32602
    async with serving(vault(), access=access_of(Settings(scopes=("read", "list")))) as wire:
        for name in ("both", "either", "mixed"):
            assert (await wire.call(f"vault/{name}", wrong))["error"]["code"] == -32602


async def test_naming_an_operation_as_data_opens_no_door(serving: Serving) -> None:
    async with serving(vault(), access=access_of(Settings(scopes=()))) as wire:
        for target, error in (("vault/both", LACKING), ("vault/hidden", NOT_FOUND)):
            assert (await wire.call("services/call", {"operationId": target, "input": {"n": "x"}}))["error"] == error
        assert (await wire.call("services/subscribe", {"operationId": "vault/watch"}))["error"] == LACKING
        assert (await wire.call("vault/watch"))["error"] == LACKING


async def test_a_refused_notification_does_not_run(serving: Serving) -> None:
    service = Service("side")
    ran: list[str] = []

    @service.mutation(inline=True, scopes=["write"])
    def effect() -> None:
        ran.append("effect")

    async with serving(service, access=access_of(Settings(scopes=()))) as wire:
        await wire.send({"jsonrpc": "2.0", "method": "side/effect"})
        await wire.nothing_more()
        assert ran == []


async def test_internal_operations_are_not_found_under_any_spelling_even_for_who_may_do_everything(
    serving: Serving,
) -> None:
    async with serving(vault()) as wire:
        for method in ("vault/hidden", "/vault/hidden"):
            assert (await wire.call(method))["error"] == NOT_FOUND
            assert (await wire.call("services/call", {"operationId": method}))["error"] == NOT_FOUND
            assert (await wire.call("services/schema", {"name": method}))["error"] == NOT_FOUND
        for listing in ("services/list", "listMethods", "describeMethods"):
            assert "hidden" not in str((await wire.call(listing))["result"])


@pytest.mark.parametrize(("scopes", "allowed"), CASES)
async def test_callers_are_told_of_exactly_what_they_may_call(
    scopes: tuple[str, ...] | None, allowed: set[str], serving: Serving
) -> None:
    expected = [name for name in ALL if name.split("/")[1] in allowed | ({"watch"} if scopes is None else set())]
    async with serving(vault(), access=access_of(Settings(scopes=scopes))) as wire:
        listed = (await wire.call("services/list"))["result"]
        assert [entry["name"] for entry in listed] == expected
        for name in ALL:
            reply = await wire.call("services/schema", {"name": name})
            if name in expected:
                assert reply["result"]["name"] == name
            else:
                assert reply["error"] == NOT_FOUND


async def test_the_list_can_be_narrowed(serving: Serving) -> None:
    other = Service("vault/deep")
    other.query(inline=True, name="look")(lambda: None)
    async with serving(vault(), other) as wire:

        async def names(**params: Any) -> list[str]:
            return [entry["name"] for entry in (await wire.call("services/list", params))["result"]]

        assert await names() == [*ALL, "vault/deep/look"]
        assert await names(namespace="vault") == ALL
        assert await names(namespace="vault/deep") == ["vault/deep/look"]
        assert await names(namespace="none") == []
        assert await names(query="NEEDS BOTH") == ["vault/both"]
        assert await names(query="look", namespace="vault") == []
        entry = (await wire.call("services/list", {"query": "watch"}))["result"]
        assert entry == [{"name": "vault/watch", "namespace": "vault", "kind": "subscription", "description": ""}]
