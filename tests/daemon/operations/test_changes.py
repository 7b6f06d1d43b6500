"""Operations that are replaced or declared while they are served."""

from __future__ import annotations

from typing import Any

import pytest

from discreet import Context, Service
from discreet.daemon.operations.registry import LazyOperations, Registry
from discreet.daemon.operations.service import Changes
from discreet.daemon.operations.spec import OperationSpec
from support.logged_events import LoggedEvents

pytestmark = pytest.mark.anyio


def with_queries(*names: str, namespace: str = "a") -> Service:
    service = Service(namespace)
    for name in names:

        def handler() -> str:
            return name

        service.query(name=name)(handler)
    service.changes = Changes()
    return service


def replace(service: Service, *names: str) -> None:
    assert service.changes is not None
    service.operations = with_queries(*names).operations
    service.changes.announce()


async def test_operations_that_come_are_found_and_those_that_go_are_not(serving: Any) -> None:
    service = with_queries("one", "two")
    async with serving(service) as wire:
        assert (await wire.call("a/one"))["result"]
        replace(service, "two", "three")
        assert (await wire.call("a/one"))["error"]["code"] == -32601
        assert (await wire.call("a/three"))["result"]
        listed = (await wire.call("services/list"))["result"]
        assert [each["name"] for each in listed] == ["a/two", "a/three"]
        for names in (["two", "three"], ["four"]):
            replace(service, *names)
            listed = (await wire.call("listMethods"))["result"]
            found = [each["name"] for each in listed if each["name"].startswith("a/")]
            assert found == [f"a/{name}" for name in names]


async def test_an_operation_of_another_service_stands_against_one_that_comes(
    serving: Any, logged: LoggedEvents
) -> None:
    changing, other = with_queries("one"), Service("")

    @other.query("a/two")
    def two() -> str:
        return "mine"

    async with serving(other, changing) as wire:
        replace(changing, "two", "three")
        assert (await wire.call("a/two"))["result"] == "mine"
        assert (await wire.call("a/three"))["result"]
    assert ("operations.declared_twice", {"methods": ["a/two"]}) in logged()


async def test_a_host_that_has_ended_is_told_of_no_changes(serving: Any) -> None:
    service = with_queries("one")
    async with serving(service) as wire:
        host = wire.daemon.host
        await wire.call("a/one")
        wire.transport.send_eof()
        await wire.ended.wait()
    replace(service, "two")
    assert host.change_count == 0


def test_the_operations_of_the_daemon_itself_stay() -> None:
    own = with_queries("a", namespace="own")
    service = with_queries("one")
    registry = Registry([service], LazyOperations(frozenset({"own/a"}), lambda: own.operations))
    assert registry.get("own/a") is not None
    service.operations = with_queries("a").operations
    assert registry.refresh() == []
    assert {spec.name for spec in registry} == {"own/a", "a/a"}


def test_operations_that_could_not_be_loaded_are_loaded_when_they_are_looked_up_again() -> None:
    failures = [OSError("no descriptors are left")]

    def load() -> list[OperationSpec]:
        if failures:
            raise failures.pop()
        return with_queries("a", namespace="own").operations

    registry = Registry([], LazyOperations(frozenset({"own/a"}), load))
    with pytest.raises(OSError, match="descriptors"):
        registry.find("own/a")
    assert registry.find("own/a") is not None


@pytest.mark.parametrize("place", ["inline", "coroutine", "thread"])
async def test_an_operation_that_a_handler_declares_is_called_and_listed(serving: Any, place: str) -> None:
    app = Service("app")

    def declare() -> None:
        @app.query("app/late")
        async def late() -> str:
            return "late"

    @app.query(inline=True)
    def inline() -> None:
        declare()

    @app.query
    async def coroutine() -> None:
        declare()

    @app.query
    def thread() -> None:
        declare()

    async with serving(app) as wire:
        assert (await wire.call("app/late"))["error"]["code"] == -32601
        assert "result" in await wire.call(f"app/{place}")
        assert (await wire.call("app/late"))["result"] == "late"
        listed = (await wire.call("services/list"))["result"]
        assert "app/late" in str(listed)


async def test_a_name_that_is_taken_is_refused_and_the_author_told(serving: Any, logged: Any) -> None:
    app = Service("app")

    @app.query
    async def again(ctx: Context) -> str:
        @app.query("app/again")
        async def other() -> str:
            return "other"

        return "first"

    async with serving(app) as wire:
        assert [(await wire.call("app/again"))["result"] for _ in range(2)] == ["first"] * 2
        assert "operations.declared_twice" in logged.names()
