"""A talk with the report writer, as a program has it: the question, the answer, the text as it comes, and a cancel."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio

from discreet.client import Peer, connect

SERVE = [sys.executable, "-P", "-m", "discreet", "serve", "./report.py:agent"]


@asynccontextmanager
async def writer(**environment: str) -> AsyncGenerator[Peer]:
    """The agent, in a process of its own."""
    async with connect(SERVE, cwd=Path(__file__).parent, env={**os.environ, **environment}) as peer:
        yield peer


async def tell(peer: Peer, text: str, *, task: str = "", stop_after: int | None = None) -> str:
    """Send a text, show all that comes of it, and cancel the task after so many pieces; returns the task's id."""
    show("you", text)
    message = {"messageId": str(uuid4()), "role": "ROLE_USER", "taskId": task, "parts": [{"text": text}]}
    pieces = 0
    async for event in peer.subscribe("SendStreamingMessage", {"message": message}):
        match event:
            case {"task": {"id": task}}:  # always the first
                pass
            case {"artifactUpdate": {"artifact": {"parts": parts}}}:
                pieces += 1
                show("report", text_of(parts))
                if pieces == stop_after:
                    show("you", "(cancel)")
                    await peer.call("CancelTask", {"id": task})
            case {"statusUpdate": {"status": {"state": state, "message": {"parts": parts}}}}:
                show("agent", f"{text_of(parts)} ({state})")
    return task


def text_of(parts: list[Any]) -> str:
    return "".join(part.get("text", "") for part in parts)


def show(who: str, text: str) -> None:
    sys.stdout.write("".join(f"{who:>6} | {line}\n" for line in text.strip().splitlines()))
    sys.stdout.flush()


async def main() -> None:
    async with writer() as peer:
        task = await tell(peer, "The tides")
        await tell(peer, "Sailors", task=task)
    sys.stdout.write("\n")
    async with writer(REPORT_PAUSE="60") as peer:  # slow, so that there is something to cancel
        task = await tell(peer, "The moon")
        await tell(peer, "Poets", task=task, stop_after=1)


if __name__ == "__main__":
    anyio.run(main)
