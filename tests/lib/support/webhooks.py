"""A webhook on loopback, which answers as a test wants, and a notifier that sends to it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.tls import TLSListener

from discreet.a2a.types import Authentication, PushConfig
from discreet.agents.notifier import PushNotifier
from discreet.agents.stores.interface import PushTarget

from .timing import FakeTiming
from .waits import DEADLINE_SECONDS, until


class Answer(NamedTuple):
    """A response of a webhook; `then` is "keep", "close" or "hang"."""

    text: bytes
    then: str = "keep"


def status(code: int, *fields: str) -> Answer:
    lines = [f"HTTP/1.1 {code} Something", "Content-Length: 0", *fields, "", ""]
    return Answer("\r\n".join(lines).encode())


OK = status(200)


HANG = Answer(b"", "hang")


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


class Hook:
    """A webhook: keeps what it was sent, and answers from `script` as long as there is something, then 200.

    The body "bad" is always answered with `bad`.
    """

    def __init__(self, script: Sequence[Answer], bad: Answer) -> None:
        self.script = list(script)
        self.bad = bad
        self.requests: list[Received] = []
        self.connections = 0
        self.connected = 0
        self.open = 0
        self.most_open = 0
        self.gate = anyio.Event()
        """Whoever asks for `/gated` is answered when it is set."""
        self.port = 0
        self._news = anyio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def bodies(self) -> list[bytes]:
        return [request.body for request in self.requests]

    async def received(self, count: int) -> None:
        while len(self.requests) < count:
            await self._news.wait()

    async def received_body(self, body: bytes) -> None:
        while body not in self.bodies:
            await self._news.wait()

    async def deserted(self) -> None:
        """Until nobody is connected."""
        while self.connected:
            await self._news.wait()

    async def serve(self, stream: anyio.abc.ByteStream) -> None:
        self.connections += 1
        self.connected += 1
        async with stream:
            try:
                received = BufferedByteReceiveStream(stream)
                while await self._exchange(received, stream):
                    pass
            except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass
            finally:
                self.connected -= 1
                self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    async def _exchange(self, received: BufferedByteReceiveStream, stream: anyio.abc.ByteStream) -> bool:
        head = (await received.receive_until(b"\r\n\r\n", 65536)).decode()
        first, *lines = head.split("\r\n")
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await received.receive_exactly(int(fields["content-length"]))
        method, path, _ = first.split(" ")
        assert method == "POST"
        answer = self.bad if body == b"bad" else self.script.pop(0) if self.script else OK
        self.requests.append(Received(path, fields, body))
        self._tell()
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            if path == "/gated":
                await self.gate.wait()
            await stream.send(answer.text)
            if answer.then == "hang":
                await anyio.sleep_forever()
        finally:
            self.open -= 1
        return answer.then == "keep"


@asynccontextmanager
async def hooked(*script: Answer, bad: Answer = OK, tls: ssl.SSLContext | None = None) -> AsyncIterator[Hook]:
    hook = Hook(script, bad)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    hook.port = listener.extra(anyio.abc.SocketAttribute.local_port)
    serving: Any = listener if tls is None else TLSListener(listener, tls, standard_compatible=False)
    async with serving, anyio.create_task_group() as tasks:
        tasks.start_soon(serving.serve, hook.serve)
        with anyio.fail_after(DEADLINE_SECONDS):
            yield hook
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def running(notifier: PushNotifier) -> AsyncIterator[PushNotifier]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(notifier.run)
        with anyio.fail_after(DEADLINE_SECONDS):
            yield notifier
        tasks.cancel_scope.cancel()


class EndlessTiming:
    """A clock on which no back-off ever ends by itself."""

    def __init__(self) -> None:
        self.sleeping = anyio.Event()

    def now(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.sleeping.set()
        await anyio.sleep_forever()

    def jitter(self) -> float:
        return 0.5


def target(
    url: str, *, config_id: str = "c", task_id: str = "t", version: str = "1.0", token: str | None = None,
    authentication: Authentication | None = None,
) -> PushTarget:  # fmt: skip
    return PushTarget(PushConfig(url, config_id, task_id, token, authentication), version)


def enqueue(notifier: PushNotifier, to: PushTarget, *bodies: bytes) -> None:
    for body in bodies:
        notifier.enqueue(to, body, final=False)


def local(timing: Any = None, **kwargs: Any) -> PushNotifier:
    return PushNotifier(allow_private=True, timing=timing or FakeTiming(), **kwargs)


async def settled(notifier: PushNotifier) -> None:
    """Until nothing waits and no delivery is under way."""
    await until(lambda: not notifier.counts()["notifications"])
