"""Calls of A2A 1.0 over HTTP, one connection each, with a bound for every wait. Knows nothing of tasks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

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
    async with _asked(port, method, params, None, ANSWER_SECONDS) as (status, headers, reader):
        async with _bounded(ANSWER_SECONDS):
            if headers.get("transfer-encoding") == "chunked":
                body = b"".join([chunk async for chunk in _chunks(reader)])
            else:
                body = await reader.readexactly(int(headers.get("content-length", "0")))
        return _result(status, body)


async def stream(port: int, method: str, params: object, *, after: int | None = None) -> AsyncIterator[Event]:
    """The events until the stream ends in order. `after` is the number of the last one that was seen. Raises as `call`."""
    async with _asked(port, method, params, after, ANSWER_SECONDS) as (status, headers, reader):
        if not headers.get("content-type", "").startswith("text/event-stream"):
            async with _bounded(ANSWER_SECONDS):
                _result(status, await reader.readexactly(int(headers.get("content-length", "0"))))
            raise BrokenError("no stream")
        pending = b""
        chunks = _chunks(reader)
        while True:
            async with _bounded(SILENCE_SECONDS):
                chunk = await anext(chunks, b"")
            if not chunk:
                break
            *blocks, pending = (pending + chunk).split(b"\n\n")
            for block in blocks:
                event = _event(status, block)
                if event is not None:
                    yield event


@asynccontextmanager
async def _bounded(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise BrokenError("silence") from None
    except (OSError, EOFError, ValueError) as exc:
        raise BrokenError(type(exc).__name__) from None


@asynccontextmanager
async def _asked(
    port: int, method: str, params: object, after: int | None, seconds: float
) -> AsyncIterator[tuple[int, dict[str, str], asyncio.StreamReader]]:
    async with _bounded(CONNECT_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        last = "" if after is None else f"last-event-id: {after}\r\n"
        head = (
            "POST / HTTP/1.1\r\nhost: localhost\r\na2a-version: 1.0\r\ncontent-type: application/json\r\n"
            f"connection: close\r\n{last}content-length: {len(body)}\r\n\r\n"
        )
        async with _bounded(seconds):
            writer.write(head.encode() + body)
            await writer.drain()
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            status = int(lines[0].split(" ")[1])
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        yield status, headers, reader
    finally:
        writer.transport.abort()


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int(await reader.readuntil(b"\r\n"), 16):
        yield (await reader.readexactly(size + 2))[:-2]


def _event(status: int, block: bytes) -> Event | None:
    number = None
    data = b""
    for line in block.split(b"\n"):
        name, _, value = line.partition(b": ")
        match name:
            case b"id":
                number = int(value)
            case b"data":
                data += value
    return Event(number, _result(status, data)) if data else None


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
