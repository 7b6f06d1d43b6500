"""Health, readiness and metrics by HTTP: what they tell, and to whom."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prometheus_client")

import anyio
from prometheus_client import REGISTRY, Counter
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as plain_text_families
from prometheus_client.registry import Collector

from discreet.agents import RequestContext, TaskEvents
from discreet.daemon.host import Host
from discreet.errors.failures import InsufficientPermissions
from discreet.gateway import health
from discreet.gateway.health import Readiness
from discreet.http import asgi
from support.asgi_client import AsgiClient
from support.executors import for_ever
from support.logged_events import logged_events
from support.postgres import Server, running_server
from support.vault import SECRET, digest, vault
from support.waits import until

from .conftest import Serve, agent_of
from .test_jsonrpc import V1, hello

pytestmark = pytest.mark.anyio


OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
ADA = {"authorization": f"Bearer {SECRET}"}


def host_of(client: Any) -> Host:
    found: Host = client._app._gateway._host
    return found


async def scraped(client: AsgiClient, **headers: str) -> dict[str, Metric]:
    """The metrics of the daemon, by name. The parser refuses what breaks the rules of the format."""
    status, got, body = await client.request("GET", "/metrics", headers={"accept": OPEN_METRICS, **headers})
    assert (status, got["content-type"].partition(";")[0]) == (200, "application/openmetrics-text")
    return {each.name: each for each in text_string_to_metric_families(body.decode())}


def values(family: Metric, name: str = "") -> dict[tuple[str, ...], float]:
    """The samples of a metric by the values of their labels."""
    wanted = name or (f"{family.name}_total" if family.type == "counter" else family.name)
    order = ("transport", "method", "code", "state", "kind")
    return {
        tuple(each.labels[label] for label in order if label in each.labels): each.value
        for each in family.samples
        if each.name == wanted
    }


# -- health --------------------------------------------------------------------------------------------------------


@pytest.fixture
async def client(serve: Serve) -> AsyncGenerator[AsgiClient]:
    async with serve(http_metrics=True) as found:
        yield found


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_a_daemon_that_serves_is_alive_and_ready_and_says_no_more(serve: Serve, path: str) -> None:
    async with serve(tokens=[f"ada:{digest(SECRET)}"]) as client:
        status, headers, body = await client.request("GET", path)
        assert (status, body) == (200, b"ok\n")
        assert headers["content-type"].startswith("text/plain")
        assert headers["cache-control"] == "no-store"


PATHS = ["/healthz", "/readyz", "/metrics"]


@pytest.mark.parametrize("path", PATHS)
async def test_they_are_read_and_nothing_below_them_is_there(client: AsgiClient, path: str) -> None:
    assert (await client.request("HEAD", path))[0] == 200
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        status, headers, _ = await client.request(method, path, b"{}")
        assert (status, headers["allow"]) == (405, "GET, HEAD")
    for below in ("/", "/x", "/message:send", "/../x"):
        assert (await client.request("GET", path + below))[0] == 404


async def test_a_daemon_that_ends_is_not_ready_any_more() -> None:
    running, leave, gate = anyio.Event(), anyio.Event(), anyio.Event()

    async def wait(context: RequestContext, events: TaskEvents) -> None:
        running.set()
        await gate.wait()
        await events.complete()

    app = asgi(agent_of(wait), isolated=True, drain_timeout=5)

    async def run() -> None:
        async with app.lifespan():
            started.set()
            await leave.wait()

    async def ends() -> bool:
        return (await client.request("GET", "/readyz"))[::2] == (503, b"not ready: draining\n")

    async def send() -> None:
        assert "result" in await client.call("SendMessage", hello(), **V1)

    started, client = anyio.Event(), AsgiClient(app)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await started.wait()
        tasks.start_soon(send)
        await running.wait()
        assert (await client.request("GET", "/readyz"))[0] == 200
        leave.set()
        await until(ends)
        assert (await client.request("GET", "/healthz"))[0] == 200
        gate.set()


@pytest.mark.skipif(sys.platform == "win32", reason="an open file can't be removed")
async def test_a_daemon_whose_store_fails_is_not_ready_and_says_so_once(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "FRESH_SECONDS", 0.0)
    async with serve(store=f"sqlite:{tmp_path / 'tasks.db'}") as client:
        assert (await client.request("GET", "/readyz"))[0] == 200
        os.unlink(tmp_path / "tasks.db")
        with logged_events("info") as logged:
            for _ in range(3):
                assert (await client.request("GET", "/readyz"))[::2] == (503, b"not ready: store\n")
            assert logged.names().count("store.failed") <= 1
        assert (await client.request("GET", "/healthz"))[0] == 200


class Store:
    """Says when its probe may go on, and counts how often it was probed."""

    def __init__(self) -> None:
        self.probed = 0
        self.gate = anyio.Event()
        self.works = True

    async def probe(self) -> bool:
        self.probed += 1
        await self.gate.wait()
        return self.works


async def test_however_many_ask_the_store_is_probed_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    store, found = Store(), []
    async with anyio.create_task_group() as tasks:
        readiness = Readiness(lambda: False, store.probe, tasks.start_soon)

        async def ask() -> None:
            found.append(await readiness.obstacle())

        async with anyio.create_task_group() as asking:
            for _ in range(20):
                asking.start_soon(ask)
            await until(lambda: store.probed)
            store.gate.set()
        await ask()
        assert (found, store.probed) == ([None] * 21, 1)
        store.works = False
        assert await readiness.obstacle() is None
        monkeypatch.setattr(health, "FRESH_SECONDS", 0.0)
        assert (await readiness.obstacle(), store.probed) == ("store", 2)


async def test_a_store_that_does_not_answer_is_not_waited_for_and_not_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health, "PROBE_SECONDS", 0.001)
    store = Store()
    async with anyio.create_task_group() as tasks:
        readiness = Readiness(lambda: False, store.probe, tasks.start_soon)
        for _ in range(3):
            assert await readiness.obstacle() == "store"
        assert store.probed == 1
        store.gate.set()
        monkeypatch.setattr(health, "PROBE_SECONDS", 60.0)
        assert await readiness.obstacle() is None
        assert store.probed == 1


# -- metrics -------------------------------------------------------------------------------------------------------


async def test_without_the_setting_there_are_none(serve: Serve) -> None:
    async with serve() as client:
        assert (await client.request("GET", "/metrics"))[0] == 404


async def test_requests_by_http_are_counted_by_method_and_code(client: AsgiClient) -> None:
    for _ in range(2):
        await client.call("SendMessage", hello(), **V1)
    await client.call("GetTask", {"id": "none"}, **V1)
    await client.request("GET", "/tasks/none", headers={"A2A-Version": "1.0"})
    async with client.stream("SendStreamingMessage", hello(), **V1) as reply:
        assert [event async for event in reply.events()]
    await client.request("POST", "/", b"{", {"content-type": "application/json"})
    await client.request("POST", "/", b"{}", {"content-type": "text/plain"})
    found = await scraped(client)
    assert values(found["discreet_requests"]) == {
        ("http", "SendMessage", "ok"): 2,
        ("http", "GetTask", "TASK_NOT_FOUND"): 2,
        ("http", "SendStreamingMessage", "ok"): 1,
        ("http", "other", "PARSE_ERROR"): 1,
        ("http", "other", "INVALID_REQUEST"): 1,
    }
    timed = values(found["discreet_request_duration_seconds"], "discreet_request_duration_seconds_count")
    assert timed == {("http", "SendMessage"): 2, ("http", "GetTask"): 2}
    assert values(found["discreet_tasks"])[("completed",)] == 3
    (commits,) = values(
        found["discreet_store_commit_duration_seconds"], "discreet_store_commit_duration_seconds_count"
    ).values()
    assert commits >= 3


async def test_names_that_callers_make_up_are_no_labels(client: AsgiClient) -> None:
    before = await scraped(client)
    for name in ("x", "SendMessage ", "sendmessage", 'a"b', "a\nb", "{}", "é", "x" * 5000, "m1", "m2", "m3"):
        await client.call(name, {}, **V1)
        await client.request("GET", f"/made-up/{name[:40]}".replace("\n", ""), headers={"A2A-Version": "1.0"})
    after = await scraped(client)
    assert after.keys() == before.keys()
    assert {labels[1] for labels in values(after["discreet_requests"])} == {"other"}


async def test_every_metric_has_a_help_text_and_a_name_of_the_conventions(client: AsgiClient) -> None:
    for family in (await scraped(client)).values():
        assert family.documentation
        if family.name.startswith("discreet_") and family.type == "histogram":
            assert family.name.endswith("_seconds")


@pytest.mark.parametrize("accept", ["", "text/plain", "text/html,*/*;q=0.1"])
async def test_who_asks_for_nothing_else_gets_plain_text(client: AsgiClient, accept: str) -> None:
    status, headers, body = await client.request("GET", "/metrics", headers={"accept": accept})
    assert (status, headers["content-type"].partition(";")[0]) == (200, "text/plain")
    names = {each.name for each in plain_text_families(body.decode())}
    assert "discreet_requests_in_flight" in names


@pytest.mark.parametrize(("scope", "named"), [("", False), (":other", False), (":metrics", True), (":read+list", True)])
async def test_a_scraper_sees_the_names_that_it_may_call_or_all_with_the_scope_metrics(
    serve: Serve, scope: str, named: bool
) -> None:
    async with serve(vault(), http_metrics=True, tokens=[f"ada:{digest(SECRET)}{scope}"]) as client:
        host_of(client).request_metrics["stdio"].refused("vault/both", InsufficientPermissions())
        found = values((await scraped(client, **ADA))["discreet_requests"])
        assert found == {("stdio", "vault/both" if named else "other", "FORBIDDEN"): 1}


@pytest.fixture
def registered() -> Iterator[Callable[[Collector], None]]:
    """`registered(collector)`: it is in prometheus-client's own registry during the test."""
    collectors: list[Collector] = []

    def register(collector: Collector) -> None:
        collectors.append(collector)
        REGISTRY.register(collector)

    yield register
    for each in collectors:
        REGISTRY.unregister(each)


async def test_metrics_of_services_and_of_the_process_are_there_too(
    client: AsgiClient, registered: Callable[[Collector], None]
) -> None:
    sold = Counter("shop_sold", "How many were sold.", registry=None)
    registered(sold)
    sold.inc(3)
    found = await scraped(client)
    assert values(found["shop_sold"]) == {(): 3}
    assert "python_info" in found


async def test_a_collector_of_a_service_that_raises_costs_one_scrape(
    client: AsgiClient, registered: Callable[[Collector], None]
) -> None:
    class Failing(Collector):
        fails = False

        def collect(self) -> Iterator[Metric]:
            if self.fails:
                raise RuntimeError("a secret of the app")
            return iter(())

    failing = Failing()
    registered(failing)
    failing.fails = True
    with logged_events("error") as logged:
        status, _, body = await client.request("GET", "/metrics")
        assert (status, body) == (500, b"internal error\n")
        assert logged.names() == ["metrics.failed"]
    failing.fails = False
    assert await scraped(client)


async def test_tasks_are_counted_before_the_first_of_them_and_after_the_card_was_read(serve: Serve) -> None:
    async with serve(agent_of(), http_metrics=True) as client:
        before = values((await scraped(client))["discreet_tasks"])
        await client.request("GET", "/.well-known/agent-card.json")
        await client.request("GET", "/extendedAgentCard", headers={"a2a-version": "1.0"})
        assert values((await scraped(client))["discreet_tasks"]) == before
        assert len(before) == 8


# -- A daemon over HTTP whose PostgreSQL server goes away and comes back --


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that a test may stop."""
    with running_server() as server:
        yield server


async def is_ready(client: AsgiClient) -> bool:
    status, _, body = await client.request("GET", "/readyz")
    assert (status, body) in ((200, b"ok\n"), (503, b"not ready: store\n"))
    return status == 200


async def test_while_the_server_is_away_the_daemon_is_not_ready_and_says_when_to_try_again(
    serve: Serve, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.agents.stores import server_store

    monkeypatch.setattr(health, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(server_store, "BRIDGED_SECONDS", 0.0)
    at_once = {**hello(), "configuration": {"returnImmediately": True}}
    async with serve(agent_of(for_ever), store=server.new_database()) as client:
        task: Any = (await client.call("SendMessage", at_once, **V1))["result"]["task"]
        assert await is_ready(client)
        await anyio.to_thread.run_sync(server.stop)
        try:
            await until(lambda: _not_ready(client))
            for method, params in (("SendMessage", at_once), ("ListTasks", {})):
                error = (await client.call(method, params, **V1))["error"]
                assert error["code"] == -32000
                details = {each["@type"].rpartition(".")[2]: each for each in error["data"]}
                assert details["ErrorInfo"]["reason"] == "UNAVAILABLE", details
                assert float(details["RetryInfo"]["retryDelay"].removesuffix("s")) > 0
            status, _, _ = await client.request("GET", "/healthz")
            assert status == 200
        finally:
            await anyio.to_thread.run_sync(server.start)
        await until(lambda: is_ready(client))
        assert "result" in await client.call("SendMessage", at_once, **V1)
        again = await client.call("GetTask", {"id": task["id"]}, **V1)
        assert again["result"]["id"] == task["id"]


async def _not_ready(client: AsgiClient) -> bool:
    return not await is_ready(client)
