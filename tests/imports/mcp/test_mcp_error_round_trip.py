"""An error of an operation that is a tool of one daemon is the same error of its import in another one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

pytest.importorskip("jsonschema_rs")

from discreet import OperationError, Service
from discreet.client import OperationFailed, Peer
from discreet.client.errors import RemoteError
from discreet.errors import FailureError, Internal, InvalidParams, Overloaded, TimedOut, Unavailable
from discreet.imports.archive import ImportArchive, pack
from discreet.imports.mcp.model import Agreed, Listing, McpImport, McpOperation
from discreet.imports.mcp.reading import read_listing
from discreet.imports.mcp.upstream import read_result, server_error
from discreet.imports.service import ImportOptions, imported_service
from discreet.testing import in_memory
from support.mcp_wire import META as META_OF_REQUESTS

META = {"_meta": META_OF_REQUESTS}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


class Part(msgspec.Struct):
    any_json: Any = None
    texts: list[str] = []


class Odd(OperationError, code="ODD", http_status=409, retryable=True, message="It is odd."):
    """With details of all kinds."""

    given: Any
    part: Part
    count: int | None = None


class Bare(OperationError, code="BARE", http_status=418):
    """Without details."""


class Undeclared(OperationError, code="HTTP_404", http_status=404):
    """Of an upstream that says something else than its document."""


RAISED: dict[str, BaseException] = {}
errand = Service("errand")


@errand.mutation(errors=[Odd, Bare])
async def run(which: str) -> int:
    """Fail."""
    raise RAISED[which]


class ByPeer:
    """An upstream that calls the tools of a daemon in this process."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        yield

    async def call(self, operation: McpOperation, arguments: dict[str, Any], ctx: object) -> Raw:
        params = {**META, "name": operation.target, "arguments": arguments}
        try:
            return read_result(operation, await self._peer.call("tools/call", params, type=Raw))
        except RemoteError as exc:
            raise server_error(exc) from exc

    def stream(self, operation: Any, arguments: Any, ctx: object) -> AsyncGenerator[Raw]:
        raise NotImplementedError


@asynccontextmanager
async def imported(hops: int = 1) -> AsyncGenerator[Peer]:
    """A peer of a daemon that imports `errand` over so many daemons."""
    async with in_memory(errand, dialect="mcp") as peer, _imported(peer, hops) as last:
        yield last


@asynccontextmanager
async def _imported(peer: Peer, hops: int) -> AsyncGenerator[Peer]:
    tools = (await peer.call("tools/list", META))["tools"]
    data = pack(read_listing(Listing(tools=tuple(tools)), Agreed("2026-07-28")))
    packed = ImportArchive(data, McpImport, McpOperation)
    service = imported_service(f"hop{hops}", packed, ByPeer(peer), ImportOptions(expose=True))
    if hops > 1:
        async with in_memory(service, dialect="mcp") as following, _imported(following, hops - 1) as last:
            yield last
    else:
        async with in_memory(service) as last:
            yield last


async def failure(peer: Peer, name: str, error: BaseException) -> RemoteError:
    RAISED["now"] = error
    with pytest.raises(RemoteError) as failed:
        await peer.call(name, {"which": "now"})
    return failed.value


@settings(max_examples=25)
@given(
    given_=JSON,
    part=st.builds(Part, any_json=JSON, texts=st.lists(st.text(), max_size=2)),
    count=st.none() | st.integers(0, 9),
)
def test_a_declared_error_with_any_details_is_the_same_error(given_: Any, part: Part, count: int | None) -> None:
    async def check() -> None:
        async with in_memory(errand) as direct, imported() as peer:
            error = Odd(given=given_, part=part, count=count)
            told = await failure(peer, "hop1/errand_run", error)
            expected = await failure(direct, "errand/run", error)
            assert isinstance(told, OperationFailed)
            assert isinstance(expected, OperationFailed)
            for fact in ("code", "retryable", "details"):
                assert getattr(told, fact) == getattr(expected, fact)
            assert told.error.message == expected.error.message

    anyio.run(check)


@pytest.mark.anyio
@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize(
    ("error", "failed"),
    [
        (Undeclared(), Internal("HTTP_404")),
        (ZeroDivisionError(), Internal()),
        (FailureError(Overloaded(1500)), Overloaded(1500)),
        (FailureError(Unavailable(2000, upstream=True)), Unavailable(2000)),
        (FailureError(TimedOut()), TimedOut()),
        (
            FailureError(InvalidParams("name", "one of", "string", ("pen", "desk"))),
            InvalidParams("name", "one of", "string", ("pen", "desk")),
        ),
    ],
)
async def test_an_error_of_the_daemon_is_the_same_error(error: BaseException, failed: Any, hops: int) -> None:
    async with imported(hops) as peer:
        name = {1: "hop1/errand_run", 2: "hop1/hop2_errand_run"}[hops]
        assert (await failure(peer, name, error)).failure == failed


@pytest.mark.anyio
async def test_an_error_without_details_is_the_same_error_after_two_hops() -> None:
    async with imported(hops=2) as peer:
        told = await failure(peer, "hop1/hop2_errand_run", Bare())
        assert isinstance(told, OperationFailed)
        assert (told.code, told.retryable, told.details) == ("BARE", False, None)
