"""What the page for people is tried with: an agent, two services, and names and texts that would be markup."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import date, datetime, time
from typing import Annotated, Any, Literal

import anyio
from msgspec import Meta, Struct

from discreet import OperationError, Service
from discreet.agents import Agent, RequestContext, Role, Skill, TaskEvents

HOSTILE = "</script><script>document.hacked = 1</script><img src='http://127.0.0.1:9/x' onerror='document.hacked = 1'>"


class Worker:
    """Does what the text says; what else it is sent it says again."""

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        await events.working("Reading it.")
        match context.text.split():
            case ["wait"]:
                name = await events.artifact("one", name="numbers")
                await events.artifact(", two", artifact_id=name, append=True)
                await anyio.sleep_forever()
            case ["ask"]:
                await events.require_input("Which colour?")
            case ["fail"]:
                raise RuntimeError("it failed")
            case _ if [message.role for message in context.task.history].count(Role.USER) > 1:
                await events.artifact(f"{context.text} it is.", name="answer")
                await events.complete("Painted.")
            case _:
                await events.artifact(f"Hello, {context.text}!", name=HOSTILE)
                await events.complete(HOSTILE)

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        await events.cancel("Held.")


agent = Agent(
    Worker(),
    name=f"Painter {HOSTILE}",
    description=f"Paints. {HOSTILE}",
    version="1.2.3",
    skills=[
        Skill(id="paint", name="Paint", description=HOSTILE, tags=("art",), examples=("ask", HOSTILE)),
        Skill(id="shop/find", name="Find", description="Finds things.", tags=("shop",)),
    ],
)


class Item(Struct):
    """One thing on a shelf."""

    name: str
    count: int = 1
    tags: list[str] = []


class OutOfStock(OperationError, code="OUT_OF_STOCK", http_status=409, retryable=True):
    """There is not enough of it."""

    left: int
    note: str = HOSTILE


shop, stock = Service("shop", description=HOSTILE), Service("stock")


@shop.query()
def find(
    name: Annotated[str, Meta(examples=["screw"], description=HOSTILE)],
    limit: Annotated[int, Meta(ge=1, le=100)] = 10,
    order: Literal["name", "count"] = "name",
) -> list[Item]:
    """Find what the shop has."""
    return [Item(f"{name} by {order}", limit, [HOSTILE])]


@shop.mutation(errors=[OutOfStock])
def buy(item: Item, gift: bool = False, tags: tuple[str, ...] = ()) -> Item:
    """Buy something."""
    if item.count > 3:
        raise OutOfStock(left=3)
    return item


@shop.mutation()
def clear() -> None:
    """Take everything off the shelves."""


@shop.subscription()
async def watch(times: int | None = None) -> AsyncIterator[Item]:
    """Tell what is sold, so many times or for ever."""
    for number in range(times or 2):
        yield Item(HOSTILE, number)
    if times is None:
        await anyio.sleep_forever()
    if times > 9:
        raise OutOfStock(left=0)


@stock.query()
def plan(at: datetime, day: date | None = None, local: time | None = None, count: int = 1) -> list[str]:
    """Say when it will be."""
    return [at.isoformat(), str(day), str(local), str(count)]


@stock.query()
def echo(value: Any) -> Any:
    """Say it again."""
    return value
