"""A session of pygls' client with the daemon. Run by whichever Python has pygls."""

import asyncio
import logging
import os
import sys
from typing import Any

from pygls.client import JsonRPCClient
from pygls.exceptions import JsonRpcException

logging.disable(logging.CRITICAL)
session = JsonRPCClient()
steps: list[int] = []


@session.feature("$/progress")
def on_progress(params: Any) -> None:  # Any: pygls makes named tuples of JSON objects
    steps.append(params.value)


def say(name: str, value: object) -> None:
    sys.stdout.write(f"{name}={value}\n")


async def failure(method: str, params: dict[str, object]) -> JsonRpcException:
    try:
        await session.protocol.send_request_async(method, params)
    except JsonRpcException as error:
        return error
    raise AssertionError(f"{method} did not fail")


async def main() -> None:
    await session.start_io("discreet", "serve", "./session_app.py:app")
    call = session.protocol.send_request_async

    initialized = await call("initialize", {"processId": os.getpid(), "capabilities": {}})
    session.protocol.notify("initialized", {})
    say("initialize", initialized.serverInfo.name)
    say("add", await call("session/add", {"a": 2, "b": 40}))
    say("text", "same" if await call("session/echo", {"text": "é→🙂"}) == "é→🙂" else "other")
    large = "x" * 1_000_000 + "→"
    say("large", "same" if await call("session/echo", {"text": large}) == large else "other")

    say("unknown", (await failure("no/such", {})).code)
    wrong = await failure("session/add", {"a": "é→🙂", "b": 1})
    say("params", f"{wrong.code} {wrong.data['param']}")

    try:
        await call("session/refuse", {"why": "it rains"})
    except JsonRpcException as error:
        say("refuse", f"{error.data['code']} {error.data['details']['why']}")

    await call("session/count", {"to": 3, "workDoneToken": "steps"})
    say("progress", " ".join(map(str, steps)))

    # pygls opens a pipe for stderr and never reads it.
    say("chatter", await call("session/chatter", {"lines": 2000}))

    waiting = session.protocol.send_request_async("session/wait", msg_id="patience")
    session.protocol.notify("$/cancelRequest", {"id": "patience"})
    try:
        await waiting
    except JsonRpcException as error:
        say("cancel", error.code)

    daemon = session._server
    daemon.stdin.write(b"this is no frame\r\n\r\n")
    say("garbage", await call("session/add", {"a": 2, "b": 40}))

    say("shutdown", (await call("shutdown")).message)
    session.protocol.notify("exit")
    await daemon.stderr.read()
    await session.stop()
    say("status", daemon.returncode)


asyncio.run(asyncio.wait_for(main(), 20))
