"""A mounted daemon behaves as before: results, errors, params, deadlines, streams are those of the service itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import pytest

from discreet import Context, Service
from discreet.client import Peer
from discreet.client.errors import (
    InternalError,
    InvalidParams,
    OperationFailed,
    OperationTimedOut,
    Overloaded,
    RemoteError,
)
from discreet.testing import in_memory
from support.far_app import Bare, Empty, Later, far
from support.form_server import taking_forms
from support.gateways import http_daemon
from support.mounts import FAR_APP, assembled, by_pipe
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

Mounted: TypeAlias = Callable[..., AbstractAsyncContextManager[Peer]]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a daemon that hosts the same app."""
    pytest.importorskip("httptools")
    folder: Path = tmp_path_factory.mktemp("far")
    with http_daemon(folder, f"{FAR_APP}:far", "--http-operations") as url:
        yield url


@pytest.fixture(params=["pipe", "http"])
def mount(request: pytest.FixtureRequest) -> Service:
    """The service, mounted in one of the ways."""
    if request.param == "pipe":
        return by_pipe(far)
    from discreet.imports.daemon.reading import read_daemon
    from discreet.imports.from_daemon import upstream_of
    from discreet.imports.targets import Url

    url = Url(request.getfixturevalue("gateway"), allow_private=True)
    return assembled(read_daemon(url), upstream_of("far", url))


@asynccontextmanager
async def both(mount: Service) -> AsyncGenerator[tuple[Peer, Peer]]:
    """A peer to the service itself, and one to the mount."""
    async with in_memory(far) as itself, in_memory(mount) as mounted:
        with anyio.fail_after(DEADLINE_SECONDS):
            yield itself, mounted


async def outcome(peer: Peer, method: str, params: Any) -> Any:
    """The result, or what the error says."""
    try:
        return await peer.call(method, params)
    except RemoteError as exc:
        return exc.code, exc.number, exc.message, exc.data


CALLS: list[tuple[str, Any]] = [
    ("far/item", {"name": "pen"}),
    ("far/item", ["pen", [{"x": 1}]]),
    ("far/item", {"name": "é😀", "how": "large"}),
    ("far/item", {"name": "empty"}),
    ("far/item", {"name": "later"}),
    ("far/item", {"name": "bare"}),
    ("far/item", {"name": "hidden"}),
    ("far/item", {"name": "broken"}),
    ("far/item", {}),
    ("far/item", ["a", [], "plain", 4]),
    ("far/item", {"name": 5}),
    ("far/item", {"name": "pen", "nam": 1}),
    ("far/item", {"name": "pen", "points": [{"x": 1}, {"x": "1"}]}),
    ("far/item", {"name": "pen", "points": [{"x": 1, "y": 11}]}),
    ("far/store", {"item": {"name": "a"}}),
    ("far/late", {}),
    ("far/numbers", {"until": 1}),
    ("services/call", {"operationId": "far/item", "input": {"name": "a", "points": [1]}}),
    ("services/call", {"operationId": "far/item", "input": [5]}),
]


@pytest.mark.parametrize(("method", "params"), CALLS)
async def test_a_call_has_the_outcome_that_it_has_without_the_mount(mount: Service, method: str, params: Any) -> None:
    async with both(mount) as (itself, mounted):
        assert await outcome(mounted, method, params) == await outcome(itself, method, params)


async def test_declared_errors_are_raised_as_their_classes_with_their_facts(mount: Service) -> None:
    async with both(mount) as (_, mounted):
        for name, expected in (("empty", Empty), ("later", Later), ("bare", Bare)):
            with pytest.raises(expected) as caught:
                await mounted.call("far/item", {"name": name}, errors=[Empty, Later, Bare])
            cause = caught.value.__cause__
            assert isinstance(cause, OperationFailed)
            assert cause.retryable is expected.definition.retryable


async def test_an_error_comes_behind_the_events_before_it(mount: Service) -> None:
    async with both(mount) as (_, mounted):
        seen: list[int] = []
        with pytest.raises(Empty) as caught:
            async for event in mounted.subscribe("far/numbers", {"until": 40, "fail": True}, errors=[Empty]):
                seen.append(event)  # noqa: PERF401 - it ends with an exception
        assert seen == [*range(40)]
        assert caught.value.shelf == 40


async def test_wrong_params_of_a_subscription_are_named(mount: Service) -> None:
    async with both(mount) as (itself, mounted):
        failures = []
        for peer in (itself, mounted):
            with pytest.raises(InvalidParams) as caught:
                await anext(peer.subscribe("far/numbers", {"until": "x"}))
            failures.append(caught.value.failure)
        assert failures[0] == failures[1]
        assert failures[0].param == "until"


async def test_a_deadline_of_the_operation_is_that_of_the_mount(mount: Service) -> None:
    async with both(mount) as (_, mounted):
        with pytest.raises(OperationTimedOut):
            await mounted.call("far/late")
        assert (await mounted.call("services/schema", {"name": "far/wait"}))["timeout"] is None


async def test_a_cancelled_call_is_cancelled_there(mount: Service) -> None:
    name = f"cancelled {id(mount)}"
    async with both(mount) as (_, mounted):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(mounted.call, "far/wait", {"name": name})
            await until(lambda: happened(mounted, f"{name} begun"))
            tasks.cancel_scope.cancel()
        await until(lambda: happened(mounted, f"{name} ended"))


async def happened(peer: Peer, what: str) -> int:
    return await peer.call("far/count", {"what": what}, type=int)


async def test_a_subscription_that_is_left_ends_there(mount: Service) -> None:
    name = f"left {id(mount)}"
    async with both(mount) as (_, mounted):
        async with mounted.subscribe("far/flood", {"name": name}) as events:
            await anext(events)
        await until(lambda: happened(mounted, f"{name} ended"))


@pytest.mark.parametrize("size", [10, 50_000])
async def test_a_slow_consumer_stops_the_producer_there(mount: Service, size: int) -> None:
    name = f"slow {size} {id(mount)}"
    async with (
        both(mount) as (_, mounted),
        anyio.create_task_group() as tasks,
        mounted.subscribe("far/flood", {"name": name, "size": size}, window=4) as events,
    ):
        tasks.start_soon(unlimited, mounted, "far/wait", {"name": f"{name} beside"})  # reading goes on for its answer
        await anext(events)
        last, same = 0, 0
        while same < 20:  # as many looks at it, each a call there and back
            now = await happened(mounted, name)
            last, same = now, (same + 1 if now == last else 0)
        assert last * size < 24_000_000  # the buffers of two connections, which the system widens on a busy machine
        for _ in range(100):
            await anext(events)
        await until(lambda: more_than(mounted, name, 100))
        tasks.cancel_scope.cancel()


async def unlimited(peer: Peer, method: str, params: Any) -> None:
    await peer.call(method, params, timeout=None)


async def more_than(peer: Peer, name: str, number: int) -> bool:
    return await happened(peer, name) > number


async def test_a_limit_there_is_told_as_overloaded(mount: Service) -> None:
    name = f"alone {id(mount)}"
    async with both(mount) as (_, mounted), anyio.create_task_group() as tasks:
        tasks.start_soon(unlimited, mounted, "far/alone", {"name": name})
        await until(lambda: happened(mounted, f"{name} begun"))
        with pytest.raises(Overloaded):
            await mounted.call("far/alone", {"name": name})
        tasks.cancel_scope.cancel()


async def test_progress_is_told() -> None:
    async with in_memory(by_pipe(far)) as mounted:
        seen: list[Any] = []
        assert await mounted.call("far/steps", {"number": 20}, on_progress=seen.append) == 20
        assert seen == [{"step": step} for step in range(20)]


async def test_what_came_of_the_caller_stays_here_but_for_its_trace(mount: Service) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with in_memory(mount) as mounted:
        sent = {
            "authorization": "Bearer ours",
            "x-own": "1",
            "traceparent": trace,
            "tracestate": "a=1",
            "baggage": "b=2",
        }
        came = await mounted.call("far/carried", service_params=sent)
        assert {name: value for name, value in came.items() if name != "subject"} == {
            "traceparent": trace,
            "tracestate": "a=1",
            "baggage": "b=2",
            "mount-depth": "1",
        }


async def test_the_mount_is_who_its_credential_says() -> None:
    token = "6ca13d52ca70c883e0f0bb101e425a89e8624de51db2d2392593af6a84118090"  # the SHA-256 of abc123
    mount = by_pipe(far, credential="inner", tokens=[f"mounter:{token}"])
    async with in_memory(mount, credentials={"inner": "abc123"}) as mounted:
        came = await mounted.call("far/carried", service_params={"authorization": "Bearer ours"})
        assert (came["subject"], came["authorization"]) == ("mounter", "Bearer abc123")


async def test_the_mount_is_who_its_oauth_client_is() -> None:
    pytest.importorskip("h11")
    token = "6ca13d52ca70c883e0f0bb101e425a89e8624de51db2d2392593af6a84118090"  # the SHA-256 of abc123
    mount = by_pipe(far, credential="inner", tokens=[f"mounter:{token}"])
    with taking_forms(lambda _: {"access_token": "abc123", "token_type": "Bearer"}) as issuer:
        text = f'[oauth]\ntoken-url = "{issuer.url}"\nclient-id = "c"\nclient-secret = "s3cret-of-c"\n'
        async with in_memory(mount, credentials={"inner": text}) as mounted:
            for _ in range(2):
                assert (await mounted.call("far/carried"))["subject"] == "mounter"
    assert len(issuer.asked) == 1


async def test_what_calls_go_through_is_counted_across_operations_of_this_daemon(mount: Service) -> None:
    near = Service("near", uses=["far/carried"])

    @near.query()
    async def relay(ctx: Context) -> dict[str, str]:
        return await ctx.call("far/carried", type=dict[str, str])

    async with in_memory(near, mount) as peer:
        came = await peer.call("near/relay", service_params={"mount-depth": "7", "authorization": "ours"})
        assert (came["mount-depth"], "authorization" in came) == ("8", False)
        with pytest.raises(InternalError):
            await peer.call("near/relay", service_params={"mount-depth": "8"})


async def test_numbered_events_go_on_behind_the_last_one(mount: Service, request: pytest.FixtureRequest) -> None:
    (ticks,) = [spec for spec in mount.operations if spec.name == "far/ticks"]
    assert ticks.numbered is (request.node.callspec.params["mount"] == "http")
    async with both(mount) as (_, mounted):
        after = mounted.subscribe("far/ticks", {"until": 6}, type=str, service_params={"last-event-id": "4"})
        assert [event async for event in after] == ["tick 5", "tick 6"]


async def test_a_call_is_a_span_of_the_request_here_and_that_there_is_its_child(mount: Service) -> None:
    pytest.importorskip("opentelemetry.sdk.trace")
    from support.spans import recorded

    with recorded() as spans:
        async with in_memory(mount, otel=True) as peer:
            came = await peer.call("far/carried")
        lines, ids = spans.tree()[:3], {f"{span.context.span_id:016x}" for span in spans.all() if span.context}
    # ours to the mount, the mount's request, its call
    assert [line.partition("far")[0] for line in lines] == ["CLIENT ", "  SERVER ", "    CLIENT "]
    assert came["traceparent"].split("-")[2] in ids
