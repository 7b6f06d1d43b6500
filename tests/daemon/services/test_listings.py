"""Listings of methods are made once for each identity, and kept for a bounded number of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from discreet import Identity
from discreet.daemon.connection.plain import builtins
from discreet.daemon.discovery import rpc_discovery
from discreet.daemon.dispatch import execution
from discreet.daemon.operations.context import Context
from discreet.daemon.operations.identity import MAX_IDENTITIES, IdentityCache
from discreet.daemon.operations.request import Request
from discreet.daemon.operations.spec import OperationSpec


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
