"""Serves A2A by gRPC on its own port, beside HTTP or without it. Needs asyncio."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, Final, final

from ...daemon.apps import AppError
from ...daemon.logs import log
from ...lazy import anyio
from ..calls import CallRunner, HttpContextBackend, agent_of
from ..server.sockets import allowed_address, listen
from ..server.tls import context_of

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # before it loads: its own lines are no part of the daemon's log
try:
    logging.getLogger("grpc._cython.cygrpc").setLevel(logging.INFO)  # below, it tells of each look for the event loop
    import grpc  # type: ignore[import-untyped]
    import grpc.aio  # type: ignore[import-untyped]

    from .endpoint import GrpcEndpoint
except ModuleNotFoundError:
    raise AppError("--grpc needs grpcio and protobuf: pip install 'discreet[grpc]'") from None

if TYPE_CHECKING:
    from ...daemon.host import Host
    from ...daemon.operations.request import ContextBackend
    from ...daemon.settings import Settings
    from ..server.listener import HttpListener

MAX_CALLS: Final = 4096
"""Calls of all clients at a time, those among them of which nothing was read yet: some 20 KB each. `--http-max-requests` bounds
those of one caller."""

STOP_SECONDS: Final = 1.0
"""How long the server may take to let go of its connections when nothing is to be sent any more."""


@contextmanager
def opened_listener(host: Host) -> Generator[GrpcListener]:
    """Listen for gRPC clients during the block, and for those of HTTP if the settings say so. Raises `AppError`, in one line, if
    it can't."""
    with ExitStack() as opened:
        http: HttpListener | None = None
        if host.settings.http is not None:
            from ..server.listener import HttpListener  # late: it loads what HTTP needs

            http = opened.enter_context(closing(HttpListener(host, host.settings)))
        yield GrpcListener(host, host.settings, http)


@final
class GrpcListener:
    """Serves gRPC while `run` runs, and HTTP through `http`. Both have the same callers, limits and figures.

    Raises `AppError`, in one line: the address can't be listened on, it needs an identity provider, or the certificate is none.
    """

    def __init__(self, host: Host, settings: Settings, http: HttpListener | None) -> None:
        given = settings.grpc or ""
        address = allowed_address(settings, "--grpc", given, callers_known=host.access.provider is not None)
        if address.path:
            raise AppError(f"--grpc {given}: gRPC is served at HOST:PORT, and not on a unix socket")
        self._credentials = _credentials(settings)
        try:
            with listen(address) as probe:  # the server binds it on the loop: that would be late to say what is wrong
                name, port = probe.getsockname()[:2]
        except OSError as exc:
            raise AppError(f"--grpc {given}: {exc.strerror or 'the address is unknown'}") from None
        self.address: Final = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
        agent_of(host).grpc_port = port
        self._host = host
        self._settings = settings
        self._http = http
        self._calls = CallRunner(host) if http is None else http.gateway.calls
        self.context_backend: Final[ContextBackend] = HttpContextBackend(host, self._calls.access)
        self.started: Final = anyio.Event()
        """Set when calls are taken."""
        self._server: Any = None  # Any: grpcio has no types of its own

    def report_to(self, on_progress: Callable[[], None]) -> None:
        """Have `on_progress()` called from now on when a request has ended."""
        if self._http is not None:
            self._http.report_to(on_progress)
        self._calls.on_progress = on_progress

    @property
    def settled(self) -> bool:
        """True when every request is answered."""
        return self._calls.settled and (self._http is None or self._http.settled)

    async def run(self) -> None:
        """Serve from when the lifespans are entered, until cancelled."""
        async with anyio.create_task_group() as tasks:
            if self._http is not None:
                tasks.start_soon(self._http.run)
            if not await self._host.lifespans.entered():
                return
            self._server = self._made_server()
            await self._server.start()
            log.always("grpc.listening", address=self.address)
            self.started.set()
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.move_on_after(STOP_SECONDS, shield=True):
                    await self._server.stop(None)

    def refuse_more(self) -> None:
        """Answer new calls with UNAVAILABLE from now on. What was accepted goes on."""
        if self._http is None:
            self._calls.close()
        else:
            self._http.refuse_more()

    async def finish(self, seconds: float) -> None:
        """Let the last bytes go, for at most so long. After it, nothing is sent."""
        async with anyio.create_task_group() as tasks:
            if self._http is not None:
                tasks.start_soon(self._http.finish, seconds)
            if self._server is not None:
                await self._server.stop(seconds)

    def _made_server(self) -> Any:
        url = f"grpc://{self.address}/" if self._http is None else self._http.url
        endpoint: Any = GrpcEndpoint(self._host, self._calls, url)
        server: Any = grpc.aio.server(
            handlers=(endpoint,),
            options=_options(self._settings),
            maximum_concurrent_rpcs=MAX_CALLS,
        )
        try:
            if self._credentials is None:
                server.add_insecure_port(self.address)
            else:
                server.add_secure_port(self.address, self._credentials)
        except RuntimeError:
            raise AppError(f"--grpc {self._settings.grpc}: the address is in use") from None
        return server


def _credentials(settings: Settings) -> Any:
    """The certificate and the key for TLS; None without. Raises `AppError`."""
    if context_of(settings) is None or settings.http_cert is None:
        return None
    with open(settings.http_cert, "rb") as cert, open(settings.http_key or settings.http_cert, "rb") as key:
        return grpc.ssl_server_credentials([(key.read(), cert.read())])


def _options(settings: Settings) -> list[tuple[str, int]]:
    """What the settings mean for the library (grpc/grpc, include/grpc/impl/channel_arg_names.h)."""
    return [
        ("grpc.so_reuseport", 0),  # else a second daemon would share the port
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        ("grpc.max_send_message_length", -1),
        (
            "grpc.compression_enabled_algorithms_bitset",
            1,
        ),  # none: the limit is one of what is sent, not of what it expands to
        ("grpc.max_metadata_size", settings.max_header_bytes),
        ("grpc.absolute_max_metadata_size", settings.max_header_bytes),
        ("grpc.max_concurrent_streams", MAX_CALLS),  # a lower one would keep calls waiting, which are better refused
        ("grpc.max_allowed_incoming_connections", settings.http_max_connections),
        ("grpc.server_handshake_timeout_ms", int(settings.frame_timeout * 1000)),
        ("grpc.keepalive_time_ms", max(1000, int(settings.http_keep_alive * 1000))),
        ("grpc.http2.max_pings_without_data", 0),
    ]
