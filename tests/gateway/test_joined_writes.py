"""Heads leave together with what follows them, and never stay behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from discreet.gateway.server.protocols import MAX_JOINED, JoinedWrites

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


class Recording(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__({"peername": "somebody"})
        self.written: list[Any] = []

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.written.append(data)

    def close(self) -> None:
        self.written.append("closed")

    def abort(self) -> None:
        self.written.append("aborted")

    def is_closing(self) -> bool:
        return "closed" in self.written


def written(*steps: Any) -> list[Any]:
    """What is written in these steps: a text, the name of a method, or None for a turn of the loop."""
    transport = Recording()

    async def run() -> None:
        joined = JoinedWrites(transport)
        assert joined.get_extra_info("peername") == "somebody"
        for step in steps:
            if step is None:
                await asyncio.sleep(0)
            elif isinstance(step, str):
                getattr(joined, step)()
            else:
                joined.write(step)
        assert joined.is_closing() is transport.is_closing()
        transport.written.append("end")
        await asyncio.sleep(0)

    asyncio.run(run())
    end = transport.written.index("end")
    return [*transport.written[:end], *transport.written[end + 1 :]]


LARGE = b"x" * (MAX_JOINED + 1)


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        ([HEAD, b"body"], [HEAD + b"body"]),
        ([HEAD, b"body", b"more", None, b"rest"], [HEAD + b"body", b"more", b"rest"]),
        ([HEAD, None, b"body"], [HEAD, b"body"]),
        ([HEAD], [HEAD]),
        ([HEAD, b""], [HEAD]),
        ([HEAD, LARGE], [HEAD, LARGE]),
        ([HEAD, b"one", HEAD, b"two"], [HEAD + b"one", HEAD + b"two"]),
        ([HEAD, "close"], [HEAD, "closed"]),
        ([HEAD, "abort"], ["aborted"]),
        ([HEAD, HEAD, None], [HEAD + HEAD]),
        ([b"body", HEAD, None, b"body"], [b"body", HEAD, b"body"]),
    ],
)
def test_what_is_written_leaves_in_order_and_a_head_with_what_follows(steps: list[Any], left: list[Any]) -> None:
    assert written(*steps) == left
