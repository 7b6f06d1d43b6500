"""What the listings of operations tell: descriptions, errors, no secrets; made once for each identity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
import pytest

from discreet import Identity, OperationError, Service
from discreet.daemon.connection.plain import builtins
from discreet.daemon.discovery import rpc_discovery
from discreet.daemon.dispatch import execution
from discreet.daemon.operations.context import Context
from discreet.daemon.operations.identity import MAX_IDENTITIES, IdentityCache
from discreet.daemon.operations.request import Request
from discreet.daemon.operations.spec import OperationSpec
from discreet.errors.redaction import register, unregister
from support.daemon_wire import Serving


class Full(OperationError, code="FULL"):
    """It is full."""


# -- one operation -------------------------------------------------------------------------------------------------


async def plain(n: int) -> int:
    return n


# -- descriptions --------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_descriptions_come_from_the_docstring_or_the_option_and_params_have_their_own(serving: Serving) -> None:
    service = Service("doc")

    @service.query(inline=True)
    def documented(size: Annotated[int, msgspec.Meta(description="How large, in bytes.", ge=1)] = 1) -> int:
        """Say how large
        it is.

        Not this.
        """
        return size

    @service.query(inline=True, description="Replaced.")
    def replaced() -> None:
        """Not this."""

    @service.query(inline=True)
    def silent() -> None:
        pass

    async with serving(service) as wire:
        listed = {e["name"]: e["description"] for e in (await wire.call("services/list"))["result"]}
        assert listed == {"doc/documented": "Say how large it is.", "doc/replaced": "Replaced.", "doc/silent": ""}
        schema = (await wire.call("services/schema", {"name": "doc/documented"}))["result"]
        assert schema["description"] == "Say how large it is."
        assert schema["inputSchema"]["properties"]["size"]["description"] == "How large, in bytes."
        methods = {m["name"]: m["description"] for m in (await wire.call("listMethods"))["result"]}
        assert methods["doc/replaced"] == "Replaced."


@pytest.mark.anyio
async def test_a_schema_holds_the_declared_errors(serving: Serving) -> None:
    service = Service("doc")
    service.query(errors=[Full])(plain)
    async with serving(service) as wire:
        schema = (await wire.call("services/schema", {"name": "/doc/plain"}))["result"]
        assert [error["code"] for error in schema["errorSchemas"]] == ["FULL"]
        assert (schema["kind"], schema["namespace"], schema["visibility"]) == ("query", "doc", "external")


# -- secrets in descriptions ---------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_registered_secret_in_a_description_is_not_listed(serving: Serving) -> None:
    secret = "correct-horse-battery"
    shop = Service("shop")
    shop.query(description=f"Asks with {secret}")(plain)
    register(secret)
    try:
        async with serving(shop) as peer:
            for method in ("services/list", "services/schema", "listMethods", "rpc.discover"):
                params = {"name": "shop/plain"} if method == "services/schema" else {}
                answer = repr(await peer.call(method, params))
                assert "shop/plain" in answer and "horse" not in answer
    finally:
        unregister(secret)


class Catalogue:
    """What there is to list, which is nothing, and how often it was asked for."""

    version = "1"
    initializers = ()
    shutdowns = ()

    def __init__(self) -> None:
        self.asked = 0
        self.change_count = 0

    @property
    def host(self) -> Catalogue:
        return self

    @property
    def catalogue(self) -> Catalogue:
        return self

    def methods(self, identity: Identity | None) -> Iterator[OperationSpec]:
        self.asked += 1
        return iter(())

    def offered(self, context: Context) -> Iterator[OperationSpec]:
        return self.methods(context.identity)

    def identify(self, metadata: Mapping[str, str]) -> Identity:
        return Identity(metadata["authorization"])


@pytest.mark.parametrize("method", ["listMethods", "describeMethods", "rpc.discover"])
def test_a_listing_is_made_once_for_each_identity_until_the_operations_change(method: str) -> None:
    catalogue: Any = Catalogue()
    operations = [*builtins(catalogue, catalogue).operations, *rpc_discovery(catalogue).operations]
    (spec,) = (spec for spec in operations if spec.name == method)

    def listing(subject: str) -> object:
        request = Request(method, b"1", None, {"authorization": subject}, spec=spec, context_backend=catalogue)
        return execution.run(request, Context(request))

    first = listing("ada")
    assert isinstance(first, bytes)
    assert [listing("ada"), listing("bob"), listing("ada")] == [first] * 3
    assert catalogue.asked == 2
    catalogue.change_count += 1
    assert listing("ada") == first
    assert catalogue.asked == 3


def test_the_oldest_identity_is_dropped_for_one_too_many() -> None:
    cache: IdentityCache[int] = IdentityCache()
    for number in range(MAX_IDENTITIES + 1):
        assert cache.get(Identity(str(number)), lambda: number, 0) == number
    assert cache.get(Identity("1"), lambda: -1, 0) == 1
    assert cache.get(Identity("0"), lambda: -1, 0) == -1
