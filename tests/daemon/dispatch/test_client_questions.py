"""Calls from the daemon to its client: what is asked, what is answered, and who stops waiting."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from discreet import ClientRefused, Context, OperationError, Service
from support.daemon_wire import Serving
from support.inputs import TOO_DEEP
from support.shop import Item
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

INTERNAL = {"code": -32603, "message": "Internal error"}
CANCELLED = {"code": -32800, "message": "Request cancelled"}


def asking() -> Service:
    service = Service("ask")

    class Refused(OperationError, code="REFUSED"):
        """The client said no."""

        number: int
        text: str

    @service.query(errors=[Refused], timeout=None)
    async def coroutine(ctx: Context, timeout: float = DEADLINE_SECONDS) -> Any:
        try:
            return await ctx.request("client/name", {"of": "you"}, timeout=timeout)
        except ClientRefused as exc:
            raise Refused(number=exc.code, text=exc.message) from exc
        except TimeoutError:
            return "late"

    @service.query(errors=[Refused], timeout=None)
    def thread(ctx: Context, timeout: float = DEADLINE_SECONDS) -> Any:
        try:
            return ctx.request_blocking("client/name", {"of": "you"}, timeout=timeout)
        except ClientRefused as exc:
            raise Refused(number=exc.code, text=exc.message) from exc
        except TimeoutError:
            return "late"

    @service.query()
    async def typed(ctx: Context) -> Item:
        result: Item = await ctx.request("item", type=Item)
        return result

    return service


ASKING = ["ask/coroutine", "ask/thread"]


async def question(wire: Any) -> Any:
    """The daemon's next question; its id."""
    message = await wire.receive()
    assert message == {
        "jsonrpc": "2.0", "id": message["id"], "method": "client/name", "params": {"of": "you"},
    }  # fmt: skip
    return message["id"]


@pytest.mark.parametrize("method", ASKING)
async def test_the_client_is_asked_and_its_answer_arrives(serving: Serving, method: str) -> None:
    async with serving(asking()) as wire:
        for answer in ("Ada", None, {"first": "Ada"}):
            await wire.send(wire.request(method))
            asked = await question(wire)
            await wire.send({"jsonrpc": "2.0", "id": asked, "result": answer})
            assert (await wire.receive())["result"] == answer
        await wire.nothing_more()


@pytest.mark.parametrize("method", ASKING)
@pytest.mark.parametrize(
    ("error", "details"),
    [
        ({"code": -32601, "message": "What?"}, {"number": -32601, "text": "What?"}),
        ({"code": 7, "message": "No", "data": [1]}, {"number": 7, "text": "No"}),
        ("no error object", {"number": 0, "text": "no error object"}),
    ],
)
async def test_the_clients_error_arrives_as_client_refused(
    serving: Serving, method: str, error: Any, details: dict[str, Any]
) -> None:
    async with serving(asking()) as wire:
        await wire.send(wire.request(method))
        await wire.send({"jsonrpc": "2.0", "id": await question(wire), "error": error})
        assert (await wire.receive())["error"]["data"]["details"] == details


@pytest.mark.parametrize("broken", [b'"result":1,"error":{}', b'"result":' + b"[" * TOO_DEEP + b"]" * TOO_DEEP])
async def test_an_answer_that_can_not_be_read_ends_the_question(serving: Serving, broken: bytes) -> None:
    async with serving(asking()) as wire:
        await wire.send(wire.request("ask/coroutine"))
        await wire.send(b'{"jsonrpc":"2.0","id":%d,%b}' % (await question(wire), broken))
        assert (await wire.receive())["error"]["data"]["details"] == {"number": 0, "text": ""}
        await wire.nothing_more()


@pytest.mark.parametrize("method", ASKING)
async def test_a_client_that_does_not_answer_in_time_is_told_to_forget_it(serving: Serving, method: str) -> None:
    async with serving(asking()) as wire:
        await wire.send(wire.request(method, {"timeout": 0.01}))
        asked = await question(wire)
        forget, reply = await wire.receive_all(2)
        assert forget == {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": asked}}
        assert reply["result"] == "late"
        await wire.send({"jsonrpc": "2.0", "id": asked, "result": "too late"})
        await wire.nothing_more()
        assert wire.daemon.connection.counts()["client_requests"] == 0


@pytest.mark.parametrize("method", ASKING)
async def test_a_cancelled_request_takes_its_question_back(serving: Serving, method: str) -> None:
    async with serving(asking()) as wire:
        await wire.send(wire.request(method, id="r"))
        asked = await question(wire)
        await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "r"}})
        messages = await wire.receive_all(2)
        assert {"jsonrpc": "2.0", "id": "r", "error": CANCELLED} in messages
        assert {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": asked}} in messages
        await until(lambda: wire.daemon.host.idle)
        await wire.nothing_more()


async def test_answers_are_matched_by_id_in_any_order_and_a_second_one_is_dropped(serving: Serving) -> None:
    async with serving(asking()) as wire:
        await wire.send(*(wire.request("ask/coroutine", id=f"r{n}") for n in range(5)))
        asked = [await question(wire) for _ in range(5)]
        assert len(set(asked)) == 5
        for number in reversed(asked):
            await wire.send(*[{"jsonrpc": "2.0", "id": number, "result": number}] * 2)
        replies = await wire.receive_all(5)
        assert {reply["id"]: reply["result"] for reply in replies} == {
            f"r{n}": number for n, number in enumerate(asked)
        }
        await wire.send({"jsonrpc": "2.0", "id": 99, "result": 1}, {"jsonrpc": "2.0", "id": "1", "result": 1})
        await wire.nothing_more()


async def test_an_answer_of_another_type_is_an_internal_error(serving: Serving) -> None:
    async with serving(asking()) as wire:
        await wire.send(wire.request("ask/typed"))
        asked = (await wire.receive())["id"]
        await wire.send({"jsonrpc": "2.0", "id": asked, "result": {"name": "x", "count": "many"}})
        assert (await wire.receive())["error"] == INTERNAL


@pytest.mark.parametrize("method", ASKING)
async def test_a_question_that_is_open_at_the_end_holds_nothing_up(serving: Serving, method: str) -> None:
    async with serving(asking(), drain_timeout=0.2) as wire:
        await wire.send(wire.request(method))
        await question(wire)
        assert await wire.end() == 0


async def test_answers_are_read_while_the_backlog_is_full(serving: Serving) -> None:
    async with serving(asking(), max_concurrency=1) as wire:
        requests = [wire.request("ask/coroutine", {"timeout": 0.5}) for _ in range(1100)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wire.send, *requests)
            asked = await question(wire)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(wire.send, {"jsonrpc": "2.0", "id": asked, "result": "in time"})
            reply = await wire.receive()
            tasks.cancel_scope.cancel()
        assert reply["result"] == "in time"
