"""Calls of A2A 1.0 over HTTP, one connection each, with a bound for every wait. Knows nothing of tasks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS: Final = 2.0
SILENCE_SECONDS: Final = 6.0
"""A stream that says nothing for so long is given up. The daemons send a comment every second."""
ANSWER_SECONDS: Final = 12.0

JsonObject = dict[str, Any]


class BrokenError(Exception):
    """The connection could not be made, ended too early, or said nothing for too long. What was asked may have been done."""


class RefusedError(Exception):
    """An error as the answer. `reason` is its name, `code` JSON-RPC's, `retry_after` seconds."""

    def __init__(self, code: int, reason: str, message: str, retry_after: float | None) -> None:
        super().__init__(f"{reason} ({code}): {message}")
        self.code = code
        self.reason = reason
        self.retry_after = retry_after


class Event(msgspec.Struct, frozen=True):
    """One event of a stream: its number in the log, None for a task as it is; and what it holds."""

    number: int | None
    value: JsonObject


async def call(port: int, method: str, params: object) -> JsonObject:
    """The result. Raises `BrokenError` and `RefusedError`."""
    async with _asked(port, method, params, None, ANSWER_SECONDS) as response:
        return _result(response.status_code, await response.aread())


async def lose_answer(port: int, method: str, params: object, seconds: float) -> None:
    """Call, and leave after so many seconds, whatever the answer is by then. Raises `BrokenError` where the call can't be sent."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    head = f"POST / HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head.encode() + b"\r\n\r\n" + body)
        await asyncio.sleep(seconds)
        writer.transport.abort()
    except OSError as exc:  # a time-out is one
        raise BrokenError(type(exc).__name__) from None


async def stream(port: int, method: str, params: object, *, after: int | None = None) -> AsyncIterator[Event]:
    """The events until the stream ends in order. `after` is the number of the last one that was seen. Raises as `call`."""
    async with _asked(port, method, params, after, SILENCE_SECONDS) as response:
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            _result(response.status_code, await response.aread())
            raise BrokenError("no stream")
        number, data = None, ""
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            if name == "id":
                number = int(value)
            elif name == "data":
                data += value
            elif not line and data:
                yield Event(number, _result(response.status_code, data.encode()))
                number, data = None, ""


@asynccontextmanager
async def _asked(
    port: int, method: str, params: object, after: int | None, seconds: float
) -> AsyncIterator[httpx.Response]:
    """The response, each piece of which comes within so many seconds."""
    import httpx

    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"host": "localhost", "a2a-version": "1.0", "connection": "close"}
    if after is not None:
        headers["last-event-id"] = str(after)
    timeout = httpx.Timeout(seconds, connect=CONNECT_SECONDS)
    try:
        async with (
            httpx.AsyncClient(verify=False, trust_env=False, timeout=timeout) as client,
            client.stream("POST", f"http://127.0.0.1:{port}/", json=body, headers=headers) as response,
        ):
            yield response
    except httpx.TransportError as exc:
        raise BrokenError(type(exc).__name__) from None


def _result(status: int, body: bytes) -> JsonObject:
    try:
        answer = json.loads(body)
    except ValueError:
        answer = {}
    if isinstance(answer, dict) and isinstance(answer.get("result"), dict):
        result: JsonObject = answer["result"]
        return result
    error = answer.get("error", {}) if isinstance(answer, dict) else {}
    raise _refused(error if isinstance(error, dict) else {}, status)


def _refused(error: JsonObject, status: int) -> RefusedError:
    reason, retry_after = f"HTTP {status}", None
    details = error.get("data")
    text = f"{error.get('message', '')} {details}"
    for detail in details if isinstance(details, list) else []:
        reason = detail.get("reason", reason)
        if "retryDelay" in detail:
            retry_after = float(detail["retryDelay"].rstrip("s"))
    return RefusedError(error.get("code", 0), reason, text, retry_after)
