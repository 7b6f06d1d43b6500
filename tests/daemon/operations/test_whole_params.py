"""A positional-only parameter takes the whole params, and decorators work with and without parentheses."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from discreet import Context, DeclarationError, OperationError, Service

pytestmark = pytest.mark.anyio


class Hover(msgspec.Struct, rename="camel"):
    text_document: dict[str, str]
    position: int = 0


async def test_the_whole_params_arrive_and_unknown_members_are_ignored(serving: Any) -> None:
    service = Service("editor")

    @service.query("textDocument/hover")
    async def hover(ctx: Context, params: Hover, /) -> str:
        return f"{params.text_document['uri']}:{params.position}"

    @service.query
    def maybe(params: dict[str, int] | None, /) -> bool:
        return params is None

    async with serving(service) as wire:
        sent = {"textDocument": {"uri": "a"}, "position": 3, "workDoneToken": 1, "_meta": {}, "new": True}
        assert (await wire.call("textDocument/hover", sent))["result"] == "a:3"
        data = (await wire.call("textDocument/hover", {"textDocument": {"uri": 1}}))["error"]["data"]
        assert data == {"param": "textDocument.*", "expected": "string", "received": "number"}
        assert (await wire.call("textDocument/hover"))["error"]["data"]["received"] == "missing"
        assert (await wire.call("textDocument/hover", [1]))["error"]["data"]["received"] == "array"
        assert (await wire.call("editor/maybe"))["result"] is True
        assert (await wire.call("editor/maybe", {"a": 1}))["result"] is False
        described = {entry["name"]: entry["params"] for entry in (await wire.call("describeMethods"))["result"]}
        assert described["textDocument/hover"] == ["textDocument: object", "position?: integer"]


async def test_calls_are_keyed_by_a_member_of_the_whole_params(serving: Any) -> None:
    service = Service("editor")

    @service.query(keyed="position")
    async def hover(params: Hover, /) -> int:
        return params.position

    async with serving(service) as wire:
        assert (await wire.call("editor/hover", {"textDocument": {}, "position": 4}))["result"] == 4


def test_whole_params_stand_alone() -> None:
    service = Service("editor")
    with pytest.raises(DeclarationError, match="'params' is positional-only and so takes the whole params"):

        @service.query
        def hover(params: Hover, /, more: int) -> None: ...


def test_whole_params_must_be_able_to_be_params() -> None:
    service = Service("editor")
    with pytest.raises(DeclarationError, match="'params' takes the whole params, which are an object or an array"):

        @service.query
        def hover(params: int, /) -> None: ...


def test_a_method_and_a_name_exclude_each_other() -> None:
    service = Service("editor")
    with pytest.raises(DeclarationError, match="named twice"):

        @service.query("textDocument/hover", name="hover")
        def hover() -> None: ...


def test_what_is_no_method_is_refused() -> None:
    with pytest.raises(DeclarationError, match="a method"):
        Service("editor").query(3)  # type: ignore[call-overload]


class ContentModified(OperationError, code="CONTENT_MODIFIED", number=-32801):
    """Content modified."""

    version: int


async def test_a_declared_error_has_the_number_that_it_declares(serving: Any) -> None:
    service = Service("editor")

    @service.query(errors=[ContentModified])
    async def hover() -> None:
        raise ContentModified(version=3)

    async with serving(service) as wire:
        assert (await wire.call("editor/hover"))["error"] == {
            "code": -32801,
            "message": "Content modified",
            "data": {"code": "CONTENT_MODIFIED", "retryable": False, "details": {"version": 3}},
        }


@pytest.mark.parametrize("number", [-32700, -32600, -32601, -32602, -32603, 2**31, "1", 1.0, True])
def test_a_number_of_json_rpc_can_not_be_declared(number: Any) -> None:
    with pytest.raises(TypeError, match="number"):
        type("Wrong", (OperationError,), {}, code="WRONG", number=number)
