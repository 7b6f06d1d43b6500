"""A peer connected to a server that the test controls."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import anyio
import msgspec
import pytest

from discreet.client import Peer, attach
from discreet.client.task_group import background_tasks
from discreet.framing.transports.memory import MemoryTransport, memory_pair
from support.waits import DEADLINE_SECONDS


class FakeServer:
    """Reads the client's messages one by one and writes what the test wants."""

    def __init__(self, transport: MemoryTransport, framing: str = "content-length") -> None:
        self.transport = transport
        self._lines = framing == "newline"
        self._held = b""

    async def read(self) -> dict[str, Any]:
        end = b"\n" if self._lines else b"\r\n\r\n"
        while end not in self._held:
            await self._more()
        body, _, self._held = self._held.partition(end)
        if not self._lines:
            length = int(body.removeprefix(b"Content-Length: "))
            while len(self._held) < length:
                await self._more()
            body, self._held = self._held[:length], self._held[length:]
        message: dict[str, Any] = msgspec.json.decode(body)
        return message

    async def _more(self) -> None:
        chunk = await self.transport.receive()
        assert chunk, "the client has gone"
        self._held += chunk

    async def write(self, *messages: object) -> None:
        """Write the messages in one piece, so that the client reads them at once."""
        await self.write_body(*(msgspec.json.encode(message) for message in messages))

    async def write_body(self, *bodies: bytes) -> None:
        frames = [
            body + b"\n" if self._lines else b"Content-Length: %d\r\n\r\n%b" % (len(body), body) for body in bodies
        ]
        await self.transport.send(b"".join(frames))

    async def notify(self, method: str, params: object = None) -> None:
        await self.write({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

    async def reply(self, request: dict[str, Any], result: object) -> None:
        await self.write({"jsonrpc": "2.0", "id": request["id"], "result": result})

    async def fail(self, request: dict[str, Any], error: object) -> None:
        await self.write({"jsonrpc": "2.0", "id": request["id"], "error": error})

    async def event(self, request: dict[str, Any], seq: int, value: object) -> None:
        params = {"id": request["id"], "seq": seq, "value": value}
        await self.write({"jsonrpc": "2.0", "method": "stream/event", "params": params})

    async def complete(self, request: dict[str, Any], events: int) -> None:
        await self.reply(request, {"completed": True, "events": events})

    async def raw(self, request: dict[str, Any], data: bytes) -> None:
        await self.transport.send(data)

    async def end(self, request: dict[str, Any]) -> None:
        self.transport.send_eof()

    async def gone(self, request: dict[str, Any]) -> None:
        """The client cancels the request."""
        assert (await self.read())["params"] == {"id": request["id"]}


Wired: TypeAlias = Callable[..., AbstractAsyncContextManager[tuple[Peer, FakeServer]]]
Answering: TypeAlias = Callable[..., AbstractAsyncContextManager[Peer]]


@pytest.fixture
async def deadline() -> AsyncGenerator[None]:
    """The test ends within seconds, whatever its servers do."""
    with anyio.fail_after(DEADLINE_SECONDS):
        yield


@pytest.fixture
def wired() -> Wired:
    @asynccontextmanager
    async def wire(*, capacity: int = 65536, **options: Any) -> AsyncIterator[tuple[Peer, FakeServer]]:
        ours, theirs = memory_pair(capacity)
        with anyio.fail_after(DEADLINE_SECONDS):
            async with attach(ours, **options) as peer:
                yield peer, FakeServer(theirs)

    return wire


@pytest.fixture
def answering() -> Answering:
    """`async with answering(serve, **options) as peer`: its server does what `serve(server)` does, to the end of it."""

    @asynccontextmanager
    async def answer(
        serve: Callable[[FakeServer], Awaitable[None]], *, capacity: int = 65536, **options: Any
    ) -> AsyncIterator[Peer]:
        ours, theirs = memory_pair(capacity)
        server = FakeServer(theirs, getattr(options.get("dialect"), "framing", None) or "content-length")
        ended = anyio.Event()

        async def run() -> None:
            await serve(server)
            ended.set()

        with anyio.fail_after(DEADLINE_SECONDS):
            async with background_tasks() as tasks:
                tasks.start_soon(run)
                async with attach(ours, **options) as peer:
                    yield peer
                    await ended.wait()

    return answer


@pytest.fixture
def scripted(wired: Wired) -> Callable[..., AbstractAsyncContextManager[Peer]]:
    """A peer whose server reads one request and then takes these steps: the name of a method of `FakeServer`, and its arguments
    behind the request."""

    @asynccontextmanager
    async def play(*steps: tuple[Any, ...], framing: Any = None) -> AsyncIterator[Peer]:
        async with wired(framing=framing) as (peer, server), anyio.create_task_group() as tasks:

            async def serve() -> None:
                request = {} if framing == "newline" else await server.read()
                if framing == "newline":
                    await server.transport.receive()
                for name, *given in steps:
                    await getattr(server, name)(request, *given)

            tasks.start_soon(serve)
            yield peer

    return play
