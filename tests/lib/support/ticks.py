"""A service of subscriptions that a test drives event by event."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio

from discreet import OperationError, Service


class Gone(OperationError, code="GONE"):
    """What was watched is gone."""

    at: int


class Hidden(OperationError, code="HIDDEN"):
    """Nobody declared this."""

    path: str


class Ticks:
    """Producers, and how far each of them ran."""

    def __init__(self) -> None:
        self.produced = 0
        self.running = 0
        self.closed = 0
        self.go = anyio.Event()
        self.service = Service("ticks")
        self.service.subscription()(self.count)
        self.service.subscription(name="brief", timeout=0.05)(self.watch)
        self.service.subscription()(self.watch)
        self.service.subscription()(self.stubborn)
        self.service.subscription(errors=[Gone])(self.fail)
        self.service.query(inline=True)(self.ping)
        self.service.query(name="later")(self.later)

    async def count(self, to: int, pad: int = 0, wait: bool = False) -> AsyncIterator[str]:
        """Events as fast as they are taken; with `wait` it gives up control before each."""
        self.running += 1
        try:
            for number in range(to):
                if wait:
                    await anyio.lowlevel.checkpoint()
                self.produced += 1
                yield f"{number}:{'x' * pad}"
        finally:
            self.running -= 1
            self.closed += 1

    async def watch(self) -> AsyncIterator[int]:
        """Two events, and then none for ever."""
        self.running += 1
        try:
            yield 1
            yield 2
            await anyio.sleep_forever()
        finally:
            self.running -= 1
            self.closed += 1

    async def stubborn(self) -> AsyncIterator[int]:
        """Goes on sending when it is told to stop."""
        try:
            yield 1
            await anyio.sleep_forever()
        except BaseException:  # noqa: BLE001 - what a handler must not do, and may
            yield 2
            yield 3
        finally:
            self.closed += 1

    async def fail(self, after: int, how: str) -> AsyncIterator[int]:
        for number in range(after):
            yield number
        match how:
            case "declared":
                raise Gone(at=after)
            case "undeclared":
                raise Hidden(path="/home/me/secret.txt")
            case "wrong-event":
                yield "no number"  # type: ignore[misc]
            case "unserialisable":
                yield object()  # type: ignore[misc]
            case "wrong-details":
                raise Gone(at="nowhere")  # type: ignore[arg-type]
            case "exit":
                raise SystemExit(4)
            case _:
                raise ValueError("/home/me/secret.txt")

    def ping(self) -> str:
        return "pong"

    async def later(self) -> str:
        await anyio.lowlevel.checkpoint()
        return "later"


async def settled(wire: Any) -> None:
    """Let the daemon run until nothing of it moves any more."""
    for _ in range(50):
        await anyio.wait_all_tasks_blocked()


def event(call_id: Any, seq: int, value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "stream/event", "params": {"id": call_id, "seq": seq, "value": value}}


async def stream(wire: Any, call_id: Any) -> tuple[list[Any], dict[str, Any]]:
    """Read one stream to its answer, with nothing else on the wire: the values, and the answer."""
    values: list[Any] = []
    while "method" in (message := await wire.receive()):
        assert message == event(call_id, len(values) + 1, message["params"]["value"])
        values.append(message["params"]["value"])
    assert message["id"] == call_id
    return values, message
