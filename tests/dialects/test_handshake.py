"""What client and server say of themselves, and what services run before they answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import anyio
import msgspec
import pytest

from discreet import Context, OperationError, Service, lsp
from discreet.daemon.logs import log

pytestmark = pytest.mark.anyio


HELLO = {"processId": None, "clientInfo": {"name": "vim", "version": "9"}, "capabilities": {"workspace": {"x": 1}}}


class Params(msgspec.Struct, rename="camel"):
    root_uri: str | None = None
    capabilities: dict[str, Any] = {}


class WrongRoot(OperationError, code="WRONG_ROOT"):
    """This folder is not served."""


async def test_handlers_know_what_the_client_said_of_itself(serving: Any) -> None:
    service = Service("shop")

    @service.query
    async def who(ctx: Context) -> list[Any]:
        return [ctx.client.name, ctx.client.version, ctx.client.protocol_version, dict(ctx.client.capabilities)]

    async with serving(service) as wire:
        assert (await wire.call("shop/who"))["result"] == ["", "", None, {}]
        await wire.call("initialize", HELLO)
        assert (await wire.call("shop/who"))["result"] == ["vim", "9", "2.0", {"workspace": {"x": 1}}]


@pytest.mark.parametrize("info", [3, {"name": 3}, {"name": None, "version": []}, None])
async def test_what_is_no_description_of_a_client_counts_as_absent(serving: Any, info: Any) -> None:
    async with serving() as wire:
        assert "result" in await wire.call("initialize", {"clientInfo": info, "capabilities": info})
        assert wire.daemon.connection.context_backend.client.name == ""


async def test_services_run_before_the_client_is_answered_and_add_capabilities(serving: Any) -> None:
    seen: list[Any] = []
    one, two = Service("one", capabilities={"a": 0}), Service("two")

    @one.initialize
    async def begin(ctx: Context, params: Params, /) -> dict[str, int]:
        seen.append((params.root_uri, ctx.client.name))
        return {"b": 1}

    @two.initialize
    def begin_in_a_thread(capabilities: dict[str, Any], **others: Any) -> None:
        seen.append(capabilities)

    async with serving(one, two) as wire:
        answer = (await wire.call("initialize", {**HELLO, "rootUri": "file:///x"}))["result"]
        assert (answer["capabilities"]["a"], answer["capabilities"]["b"]) == (0, 1)
        assert answer["serverInfo"]["name"] == "one, two"
        assert seen == [("file:///x", "vim"), HELLO["capabilities"]]
        assert (await wire.call("one/$initialize", {}))["error"]["code"] == -32601
        names = [entry["name"] for entry in (await wire.call("listMethods"))["result"]]
        assert names.count("initialize") == 1
        assert not [name for name in names if "$initialize" in name]


async def test_a_service_can_refuse_a_client(serving: Any) -> None:
    service = Service("shop")

    @service.initialize(errors=[WrongRoot])
    async def begin(params: Params, /) -> None:
        raise WrongRoot

    async with serving(service) as wire:
        assert (await wire.call("initialize", {}))["error"]["data"]["code"] == "WRONG_ROOT"


@pytest.mark.parametrize(
    ("dialect", "hello"),
    [
        ("plain", {}),
        ("lsp", None),
        ("lsp", {}),
        ("mcp", {"protocolVersion": "2025-11-25"}),
        ("acp", {"protocolVersion": 1}),
    ],
)
async def test_params_that_a_service_cannot_take_are_named(
    serving: Any, dialect: str, hello: dict[str, Any] | None
) -> None:
    service = Service("shop")

    @service.initialize
    async def begin(params: lsp.InitializeParams, /) -> None:
        """Need what LSP's clients say of themselves."""

    async with serving(service, dialect=dialect, framing="content-length") as wire:
        error = (await wire.call("initialize", hello))["error"]
        assert (error["code"], error["data"]["param"], error["data"]["received"]) == (-32602, "capabilities", "missing")


async def test_what_a_service_calls_with_wrong_params_is_its_own_fault(serving: Any) -> None:
    service = Service("shop", uses=["shop/price"])

    @service.query
    async def price(item: str) -> int:
        return 1

    @service.initialize
    async def begin(ctx: Context, params: Params, /) -> None:
        await ctx.call("shop/price", {})

    async with serving(service) as wire:
        assert (await wire.call("initialize", {}))["error"]["code"] == -32603


@pytest.mark.parametrize(
    ("services", "name", "version"),
    [
        ([("shop", "")], "shop", "1.2.3"),
        ([("", "")], "discreet", "1.2.3"),
        ([("shop", ""), ("stock", "2"), ("shop", "3")], "shop, stock", "2"),
        ([("a", ""), ("b", ""), ("c", ""), ("d", "")], "a, b, c, …", "1.2.3"),
    ],
)
async def test_clients_are_told_of_the_services(
    serving: Any, services: list[tuple[str, str]], name: str, version: str
) -> None:
    async with serving(*(Service(namespace, version=said) for namespace, said in services)) as wire:
        assert (await wire.call("initialize"))["result"]["serverInfo"] == {"name": name, "version": version}


async def test_a_service_may_put_its_own_in_the_place_of_the_handshake(serving: Any) -> None:
    service = Service()

    @service.query
    async def initialize(params: dict[str, Any], /) -> str:
        return "mine"

    @service.query
    async def shutdown() -> str:
        return "not yet"

    async with serving(service) as wire:
        assert (await wire.call("initialize", HELLO))["result"] == "mine"
        assert (await wire.call("shutdown"))["result"] == "not yet"
        assert (await wire.call("version"))["result"] == {"version": "1.2.3"}
        assert [e["name"] for e in (await wire.call("listMethods"))["result"]].count("initialize") == 1


# -- What the log says of a failure: the number that the client was given, in every dialect --


class NotThere(OperationError, code="NOT_THERE"):
    """It is not there"""


def shop() -> Service:
    service = Service("shop")

    @service.query(timeout=0.01)
    async def late() -> None:
        """Take longer than the deadline."""
        await anyio.sleep_forever()

    @service.query(errors=[NotThere])
    async def missing() -> None:
        """Raise a declared error."""
        raise NotThere

    @service.notification("shop/told")
    def told(text: str) -> None:
        """Take note."""

    return service


def logged_failures(logged: Any) -> list[tuple[int | None, str]]:
    return [(fields.get("code"), fields["failure"]) for name, fields in logged() if name == "request.failed"]


@pytest.mark.parametrize(
    ("dialect", "hello"),
    [
        ("plain", None),
        ("lsp", {"processId": None, "rootUri": None, "capabilities": {}}),
        ("acp", {"protocolVersion": 1}),
    ],
)
async def test_the_log_has_the_number_that_the_client_was_given(
    serving: Any, logged: Any, dialect: str, hello: dict[str, Any] | None
) -> None:
    async with serving(shop(), dialect=dialect, framing="content-length") as wire:
        if hello is not None:
            await wire.call("initialize", hello)
        given = [(await wire.call(method))["error"]["code"] for method in ("shop/late", "shop/missing", "no/such")]
    assert logged_failures(logged) == list(zip(given, ["TIMEOUT", "NOT_THERE", "NOT_FOUND"], strict=True))


async def test_a_failure_that_is_told_as_a_result_has_no_number(serving: Any, logged: Any) -> None:
    async with serving(shop(), dialect="mcp", framing="content-length") as wire:
        await wire.call("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
        assert (await wire.call("tools/call", {"name": "shop_missing"}))["result"]["isError"]
    assert logged_failures(logged) == [(None, "NOT_THERE")]


async def test_a_notification_that_fails_has_no_number(serving: Any, logged: Any) -> None:
    async with serving(shop()) as wire:
        await wire.send({"jsonrpc": "2.0", "method": "shop/told", "params": {"text": 1}})
        await wire.nothing_more()
    assert logged_failures(logged) == [(None, "INVALID_INPUT")]


# -- the methods of the daemon itself: what they take, and what they say where a param is wrong --


@pytest.fixture
def same_level() -> Iterator[None]:
    level = log.level
    yield
    log.set_level(level)


@pytest.mark.parametrize(
    ("level", "received"),
    [
        (5, "number"),
        (None, "null"),
        ("loud", "loud"),
        (" info ", "string"),
    ],
)
async def test_a_wrong_log_level_is_refused_with_the_list_of_levels(
    serving: Any, same_level: None, level: object, received: str
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
async def test_a_log_level_is_taken_in_any_case(serving: Any, same_level: None, given: str, level: str) -> None:
    async with serving(Service("shop")) as wire:
        assert (await wire.call("setLogLevel", {"level": given}))["result"] == {"level": level, "success": True}
        assert log.level == level


async def test_people_are_told_what_a_param_takes(serving: Any) -> None:
    service = Service("shop")

    @service.query()
    def price(size: Literal["small", 1] = 1, count: int = 1) -> Literal[True]:
        return True

    async with serving(service) as wire:
        described = {method["name"]: method for method in (await wire.call("describeMethods"))["result"]}
    assert described["setLogLevel"]["params"] == ["level: string"]
    assert described["shop/price"]["params"] == ["size?: one of 1, small", "count?: integer"]
    assert described["shop/price"]["returns"] == "one of true"
