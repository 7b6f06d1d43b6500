"""`initialize` with wrong params: refused by the name of the param, or ignored; the server lives on and may be greeted again."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from discreet import Context, Service, lsp
from support.logged_events import LoggedEvents
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


def encodings(value: Any) -> dict[str, Any]:
    return {"capabilities": {"general": {"positionEncodings": value}}}


REFUSED: list[tuple[Any, str, str]] = [
    ([1], "$", "array"),
    ({"capabilities": 5}, "capabilities", "number"),
    ({"capabilities": [1]}, "capabilities", "array"),
    ({"capabilities": {"general": "x"}}, "capabilities.general", "string"),
    (encodings("utf-8"), "capabilities.general.positionEncodings", "string"),
    (encodings([5, "utf-8"]), "capabilities.general.positionEncodings[0]", "number"),
    ({"processId": "x", "capabilities": {}}, "processId", "string"),
    ({"processId": True, "capabilities": {}}, "processId", "boolean"),
    ({"processId": 1.5, "capabilities": {}}, "processId", "number"),
]
"""What the server itself needs of it: params, the param that is named, and what it received."""

IGNORED: list[Any] = [
    None,
    [],
    {},
    {"capabilities": None},
    {"capabilities": []},  # clients in Lua
    {"capabilities": {"textDocument": 5, "workspace": "x", "window": []}},
    {"capabilities": {"window": {"workDoneProgress": "yes"}}},
    {"capabilities": {"general": []}},
    encodings([]),
    encodings(None),
    *({"processId": pid, "capabilities": {}} for pid in (None, 0, -1, 10**30)),
    *({name: 5, "capabilities": {}} for name in ("clientInfo", "trace", "locale", "rootUri", "rootPath")),
    {"clientInfo": {"name": 5}, "capabilities": {}},
    *({"workspaceFolders": given, "capabilities": {}} for given in (5, [5], [{"uri": 5}])),
    {"workDoneToken": {}, "capabilities": {}},
]

REFUSED_BY_TYPE: list[tuple[Any, str]] = [
    ({}, "capabilities"),
    ({"capabilities": 5}, "capabilities"),
    ({"capabilities": {}, "processId": None, "workspaceFolders": [{"uri": 5}]}, "workspaceFolders[0].uri"),
    ({"capabilities": {}, "processId": None, "rootUri": 5}, "rootUri"),
    ({"capabilities": {}, "processId": None, "trace": 5}, "trace"),
]


def without_hook() -> Service:
    return Service("toy", dialect="lsp")


def with_hook() -> Service:
    service = Service("toy", dialect="lsp")

    @service.initialize
    async def begin(ctx: Context) -> None: ...

    return service


def with_typed_hook() -> Service:
    service = Service("toy", dialect="lsp")

    @service.initialize
    def begin(params: lsp.InitializeParams, /) -> None: ...

    return service


@pytest.mark.parametrize("service", [without_hook, with_hook])
async def test_wrong_params_are_refused_by_name_and_the_client_may_try_again(serving: Any, service: Any) -> None:
    for params, param, received in REFUSED:
        async with serving(service()) as wire:
            error = (await wire.call("initialize", params))["error"]
            assert (error["code"], error["data"]["param"], error["data"]["received"]) == (-32602, param, received)
            assert "capabilities" in (await wire.call("initialize", {"capabilities": {}}))["result"]


@pytest.mark.parametrize("service", [without_hook, with_hook])
async def test_what_the_server_does_not_need_is_not_looked_at(serving: Any, service: Any) -> None:
    for params in IGNORED:
        async with serving(service()) as wire:
            result = (await wire.call("initialize", params))["result"]
            assert result["capabilities"]["positionEncoding"] == "utf-16", params
            assert (await wire.call("shutdown"))["result"] is None


async def test_a_typed_handler_refuses_wrong_params_by_name(serving: Any) -> None:
    for params, param in REFUSED_BY_TYPE:
        async with serving(with_typed_hook()) as wire:
            error = (await wire.call("initialize", params))["error"]
            assert (error["code"], error["data"]["param"]) == (-32602, param)
            hello = {"processId": None, "rootUri": None, "capabilities": [], "workspaceFolders": []}
            assert "capabilities" in (await wire.call("initialize", hello))["result"]


async def test_a_greeting_that_is_cancelled_before_it_begins_may_be_repeated(serving: Any) -> None:
    gate = threading.Event()
    service = Service("toy", dialect="lsp")

    @service.initialize
    def begin(ctx: Context) -> None:
        assert gate.wait(DEADLINE_SECONDS)

    async with serving(service) as wire:
        cancel = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}}
        await wire.send(wire.request("initialize", {"capabilities": {}}), cancel)
        assert (await wire.receive())["error"]["code"] == -32800
        gate.set()
        assert "capabilities" in (await wire.call("initialize", {"capabilities": {}}))["result"]


async def test_a_cancellation_as_a_request_has_its_turn_like_any_other(serving: Any) -> None:
    async with serving(without_hook()) as wire:
        assert (await wire.call("$/cancelRequest", {"id": 7}))["error"]["code"] == -32002
        await wire.call("initialize", {"capabilities": {}})
        assert (await wire.call("$/cancelRequest", {"id": 7}))["result"] is None
        await wire.call("shutdown")
        assert (await wire.call("$/cancelRequest", {"id": 7}))["error"]["code"] == -32600


async def test_a_method_that_is_nearly_lsps_is_logged(serving: Any, logged: LoggedEvents) -> None:
    words = Service("words")

    @words.query("textDocument/hovr")
    def hover(params: lsp.HoverParams, /) -> None: ...

    async with serving(words, dialect="lsp"):
        pass
    (unknown,) = [fields for name, fields in logged() if name == "method.unknown"]
    assert "nearest: textDocument/hover;" in unknown["hint"]
