"""Progress that an editor shows: with whose token, that it always ends, and what its user's cancellation ends."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from discreet import Context, Service, lsp
from support.lsp_messages import note, shake_hands

pytestmark = pytest.mark.anyio


def working() -> Service:
    service = Service("work", dialect="lsp")

    @service.command
    async def index(ctx: Context, *, wait: bool = False) -> bool:
        async with lsp.Editor(ctx).progress("Indexing", cancellable=True) as progress:
            await progress.report("half", 50)
            if wait:
                await anyio.sleep_forever()
        return progress.cancelled

    return service


async def test_progress_begins_reports_and_always_ends(serving: Any) -> None:
    async with serving(working()) as wire:
        await shake_hands(wire, window={"workDoneProgress": True})
        run = {"command": "work.index", "arguments": [], "workDoneToken": 7}
        await wire.send(wire.request("workspace/executeCommand", run))
        *told, answer = await wire.receive_all(4)
        assert [one["params"]["token"] for one in told] == [7, 7, 7]
        assert [one["params"]["value"]["kind"] for one in told] == ["begin", "report", "end"]
        assert answer["result"] is False
        await wire.send(wire.request("workspace/executeCommand", {"command": "work.index"}))
        created = await wire.receive()
        assert created["method"] == "window/workDoneProgress/create"
        await wire.send({"jsonrpc": "2.0", "id": created["id"], "result": None})
        assert {one["params"]["token"] for one in await wire.receive_all(3)} == {created["params"]["token"]}
        assert (await wire.receive())["result"] is False


async def test_a_token_belongs_to_the_first_progress_that_is_shown_with_it(serving: Any) -> None:
    async with serving(working()) as wire:
        await shake_hands(wire, window={"workDoneProgress": True})
        run = {"command": "work.index", "arguments": [True], "workDoneToken": "t"}
        first, second = wire.request("workspace/executeCommand", run), wire.request("workspace/executeCommand", run)
        await wire.send(first)
        await wire.receive_all(2)
        await wire.send(second)
        created = await wire.receive()
        assert created["method"] == "window/workDoneProgress/create"
        await wire.send({"jsonrpc": "2.0", "id": created["id"], "result": None})
        assert {one["params"]["token"] for one in await wire.receive_all(2)} == {created["params"]["token"]}
        for token, call in (("t", first), (created["params"]["token"], second)):
            await wire.send(note("window/workDoneProgress/cancel", {"token": token}))
            end, answer = await wire.receive_all(2)
            assert (end["params"]["token"], end["params"]["value"]["kind"]) == (token, "end")
            assert (answer["id"], answer["result"]) == (call["id"], True)


async def test_a_second_progress_of_a_request_is_one_of_its_own(serving: Any) -> None:
    service = Service("work", dialect="lsp")

    @service.command
    async def twice(ctx: Context) -> None:
        for title in ("One", "Two"):
            async with lsp.Editor(ctx).progress(title):
                pass

    async with serving(service) as wire:
        await shake_hands(wire)
        run = {"command": "work.twice", "workDoneToken": 7}
        await wire.send(wire.request("workspace/executeCommand", run))
        begin, end, answer = await wire.receive_all(3)
        assert [one["params"]["value"]["kind"] for one in (begin, end)] == ["begin", "end"]
        assert "result" in answer


async def test_a_progress_that_its_user_cancels_ends_the_work(serving: Any) -> None:
    async with serving(working()) as wire:
        await shake_hands(wire)
        await wire.send(
            wire.request(
                "workspace/executeCommand", {"command": "work.index", "arguments": [True], "workDoneToken": "t"}
            )
        )
        await wire.receive_all(2)
        await wire.send(note("window/workDoneProgress/cancel", {"token": "t"}))
        assert (await wire.receive())["params"]["value"]["kind"] == "end"
        assert (await wire.receive())["result"] is True
