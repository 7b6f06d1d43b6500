"""Serves the gateway on its own sockets, beside the connection over stdio or instead of it. Needs asyncio, as uvicorn does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, final

import uvicorn

from ...daemon.apps import AppError
from ...daemon.logs import ConfiguredPath, log
from ...daemon.process.sockets import SocketFile, listen
from ...daemon.settings.addresses import read_address
from ...lazy import anyio
from ..gateway import Gateway
from ..settings import call_settings, origins_of
from .certificates import load_certificate
from .protocols import Limits, protocol_factory
from .strict import StrictHttp

if TYPE_CHECKING:
    import ssl

    from ...daemon.host import Host
    from ...daemon.memory import MemoryBudget
    from ...daemon.settings import Settings

IDLE_SECONDS: Final = 75
"""How long a connection may stay open between two requests. Longer than the 60 s of common proxies, which then close first."""


@final
class _Server(uvicorn.Server):
    """Leaves signals to the daemon."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@final
class HttpListener:
    """Listens from the first moment until `close`, and serves while `run` runs.

    Raises `AppError`, in one line: the address can't be listened on, nobody may listen on it without an identity provider, or
    the certificate is none.
    """

    def __init__(self, host: Host, settings: Settings) -> None:
        address = read_address(settings.http or "")
        assert address is not None, "the setting is checked when it is read"
        if not (address.loopback or settings.http_open or host.access.provider is not None):
            raise AppError(
                f"--http {settings.http}: others could call it; add --token or --identity, or --http-open to let anybody"
            )
        if settings.backend != "asyncio":
            raise AppError("--http needs --backend asyncio")
        local = address.loopback and host.access.provider is None and not settings.http_open
        self.gateway: Final = Gateway(
            host,
            call_settings(settings, own_server=True),
            origins_of(settings, local=address.loopback, host=address.host),
            local_only=local,
        )
        self.context_host: Final = self.gateway.context_host
        self._host = host
        self._settings = settings
        try:
            self._server: Final = _Server(_config(self.gateway, host.memory, settings))
            self._socket: Final = listen(address)
            self._file: Final = SocketFile(address.path) if address.path else None
        except OSError as exc:
            unknown = "the path is too long for a socket" if address.path else "the address is unknown"
            raise AppError(f"--http {settings.http}: {exc.strerror or unknown}") from None
        self._ended: anyio.Event | None = None

    def report_to(self, on_progress: Callable[[], None]) -> None:
        """Have `on_progress()` called when a request has ended."""
        self.gateway.calls.on_progress = on_progress

    @property
    def url(self) -> str:
        """Where it listens."""
        name = self._socket.getsockname()
        if isinstance(name, str):
            return f"unix:{name}"
        host = f"[{name[0]}]" if ":" in name[0] else name[0]
        return f"{'https' if self._settings.http_cert else 'http'}://{host}:{name[1]}/"

    async def run(self) -> None:
        """Serve from when the lifespans are entered, until `finish`, or until cancelled."""
        self._ended = anyio.Event()
        if not await self._host.lifespans.entered():
            return
        log.always("http.listening", url=ConfiguredPath(self.url))
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            self._ended.set()

    def refuse_more(self) -> None:
        """Accept no more connections, and refuse what comes over those that are open. What was accepted goes on."""
        self.gateway.calls.close()
        self._remove_file()
        for server in getattr(self._server, "servers", ()):  # there are none before it has started
            server.close()

    @property
    def settled(self) -> bool:
        """True when every request is answered."""
        return self.gateway.calls.settled

    async def finish(self, seconds: float) -> None:
        """Let the last bytes go, for at most so long. After it, nothing is sent."""
        self._server.should_exit = True
        if self._ended is not None:
            with anyio.move_on_after(seconds):
                await self._ended.wait()

    def close(self) -> None:
        """Listen no more, also where it never ran."""
        self._remove_file()
        self._socket.close()

    def _remove_file(self) -> None:
        if self._file is not None:
            self._file.remove()


def _is_fault(record: logging.LogRecord) -> bool:
    """What ends with the loop is none: a client that did not take its answer in time."""
    exc = record.exc_info[1] if record.exc_info else None
    if isinstance(exc, asyncio.CancelledError):
        log.info("http.client_cut")
        return False
    return True


def _tls(settings: Settings) -> ssl.SSLContext | None:
    """Raises `AppError` for a certificate that is none."""
    if settings.http_key is not None and settings.http_cert is None:
        raise AppError("--http-key needs --http-cert beside it")
    return None if settings.http_cert is None else load_certificate(settings.http_cert, settings.http_key)


def _config(gateway: Gateway, memory: MemoryBudget, settings: Settings) -> uvicorn.Config:
    limits = Limits(
        head_seconds=settings.frame_timeout,
        write_seconds=settings.frame_timeout,
        head_bytes=settings.max_header_bytes,
        connections_per_address=settings.http_max_connections,
    )
    errors = logging.getLogger("uvicorn.error")
    errors.setLevel(logging.ERROR)  # what it says below that, our own events say
    errors.addFilter(_is_fault)
    return uvicorn.Config(
        StrictHttp(gateway, settings.max_header_bytes),
        http=protocol_factory(limits, memory, _tls(settings)),  # type: ignore[arg-type] # it is called, not more
        loop="none",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS,
        h11_max_incomplete_event_size=settings.max_header_bytes,
    )
