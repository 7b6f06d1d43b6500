"""Mounts the gateway as an ASGI app in another server. It begins with that server's lifespan, or with the first request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, final

import anyio

from ..daemon.apps import AppError, Hosted
from ..daemon.daemon import Daemon
from ..daemon.hosting import build_host, log_settings, opened_store
from ..daemon.logs import log, start_logging
from ..framing import stdio_guard
from ..framing.transports.memory import memory_pair
from .gateway import Gateway

if TYPE_CHECKING:
    from ..daemon.host import Host
    from ..daemon.operations.access import IdentityProvider
    from ..daemon.operations.request import ContextBackend
    from ..daemon.settings import Settings
    from .asgi import Receive, Scope, Send


@final
class _Run:
    """One run of the gateway, which is the daemon's listener. It has no socket of its own."""

    def __init__(self, host: Host, gateway: Gateway) -> None:
        self._host = host
        self._gateway = gateway
        self._daemon = Daemon(host, memory_pair()[0], listener=self)
        self._ended = anyio.Event()
        self.ready = anyio.Event()
        self.fault: AppError | None = None

    async def serve(self) -> None:
        """Run until `end`. What a service's lifespan raised at the start is the `fault`. `ready` is set in any case."""
        try:
            self._daemon.begin()
            await self._daemon.run()
        except AppError as exc:
            self.fault = exc
        finally:
            self.ready.set()
            self._ended.set()

    async def end(self) -> None:
        """Let running requests finish, within the drain window."""
        self._daemon.ask_to_end("shutdown")
        with anyio.CancelScope(shield=True):
            await self._ended.wait()

    # -- as the listener ---------------------------------------------------------------------------------------

    def report_to(self, on_progress: Callable[[], None]) -> None:
        self._gateway.calls.on_progress = on_progress

    @property
    def context_backend(self) -> ContextBackend:
        return self._gateway.context_backend

    @property
    def settled(self) -> bool:
        return self._gateway.calls.settled

    async def run(self) -> None:
        if await self._host.lifespans.entered():
            self.ready.set()

    def refuse_more(self) -> None:
        self._gateway.calls.close()

    async def finish(self, seconds: float) -> None: ...


@final
class MountedGateway:
    """An ASGI app, to be served or to be mounted in another app.

    A server with ASGI's lifespan protocol starts and ends it. Frameworks do not pass that on to mounted apps: give them
    `lifespan`. Without either, it starts with the first request, on asyncio only, and ends with the process, which then waits
    for no running request.

    `make()` makes the host and its gateway, anew for each start, and once at construction to find faults. `logging()`
    surrounds each run.
    """

    def __init__(
        self, make: Callable[[], tuple[Host, Gateway]], logging: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._make = make
        self._logging = logging
        self._made: tuple[Host, Gateway] | None = make()
        self._gateway: Gateway | None = None
        self._starting: tuple[asyncio.Task[None], asyncio.Future[None]] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._follow(receive, send)
        if self._gateway is None:
            await self._start()
        assert self._gateway is not None
        await self._gateway(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncGenerator[None]:
        """Run the app during the block. For a framework that it is mounted in: `FastAPI(lifespan=agent.lifespan)`.

        Leaving the block lets requests finish within the drain window. Raises `AppError` if a service's own lifespan fails, or
        if the store can't be opened.
        """
        if self._gateway is not None:
            raise RuntimeError("it runs already")
        host, gateway = self._made or self._make()
        self._made = None
        run = _Run(host, gateway)
        with self._logging(), opened_store(host):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run.serve)
                await run.ready.wait()
                if run.fault is None:
                    self._gateway = gateway
                    try:
                        yield
                    finally:
                        await run.end()
                        self._gateway = None
        if run.fault is not None:
            raise run.fault

    async def _follow(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            async with self.lifespan():
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except Exception as exc:
            if self._gateway is None:
                await send({"type": "lifespan.startup.failed", "message": str(exc)})
            raise
        await send({"type": "lifespan.shutdown.complete"})

    async def _start(self) -> None:
        """Start in a task of its own, which runs until the process ends."""
        if self._starting is None:
            try:
                started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            except RuntimeError:
                raise RuntimeError(
                    "without asyncio it must be started: pass `lifespan` to what it is mounted in"
                ) from None
            self._starting = asyncio.create_task(self._stay(started)), started
        await asyncio.shield(self._starting[1])

    async def _stay(self, started: asyncio.Future[None]) -> None:
        try:
            async with self.lifespan():
                started.set_result(None)
                await anyio.sleep_forever()
        except AppError as exc:
            log.error("app.failed", problem=str(exc))
            started.set_exception(exc)


def mounted(
    hosted: Hosted, settings: Settings, provider: IdentityProvider | None, environ: Mapping[str, str]
) -> MountedGateway:
    """The app that serves these, and that writes the log while it runs, unless somebody does. Raises `AppError` or
    `DeclarationError`.
    """

    def make() -> tuple[Host, Gateway]:
        host = build_host(settings, hosted, provider)
        return host, Gateway(host, local=host.access.provider is None and not settings.http_open)

    @contextmanager
    def logging() -> Iterator[None]:
        if log.queue.attached:
            yield
            return
        writer = start_logging(log_settings(settings), stdio_guard.STDERR, environ, announce=False)
        try:
            yield
        finally:
            writer.close()
            log.queue.open = True  # for a writer that is still to be attached

    return MountedGateway(make, logging)
