"""Serves the gateway on its own sockets, beside the connection over stdio or instead of it. Needs asyncio."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final, final

from ...daemon.apps import AppError
from ...daemon.logs import ConfiguredPath, log
from ...lazy import anyio
from ..gateway import Gateway
from .sockets import SocketFile, allowed_address, listen
from .tls import context_of

try:
    from .protocol import HttpServer
except ModuleNotFoundError as exc:
    raise AppError(f"--http needs {exc.name}: pip install 'discreet[http]'") from None

if TYPE_CHECKING:
    from ...daemon.host import Host
    from ...daemon.settings import Settings


@contextmanager
def opened_listener(host: Host) -> Generator[HttpListener]:
    """Listen for HTTP clients during the block. Raises `AppError`, in one line, if it can't."""
    if host.settings.http is None:
        raise AppError("--no-stdio leaves no way in; add --http HOST:PORT")
    with closing(HttpListener(host, host.settings)) as listener:
        yield listener


@final
class HttpListener:
    """Listens from the first moment until `close`, and serves while `run` runs.

    Raises `AppError`, in one line: the address can't be listened on, it needs an identity provider, or the certificate is
    none.
    """

    def __init__(self, host: Host, settings: Settings) -> None:
        address = allowed_address(
            settings, "--http", settings.http or "", callers_known=host.access.provider is not None
        )
        self.gateway: Final = Gateway(host, local=address.loopback, address=address.host)
        self.context_backend: Final = self.gateway.context_backend
        self._host = host
        self._settings = settings
        try:
            self._server: Final = HttpServer(self.gateway, settings, host.memory, context_of(settings))
            self._socket: Final = listen(address)
            self._file: Final = SocketFile(address.path) if address.path else None
        except OSError as exc:
            unknown = "the path is too long for a socket" if address.path else "the address is unknown"
            raise AppError(f"--http {settings.http}: {exc.strerror or unknown}") from None
        self._ended: anyio.Event | None = None

    def report_to(self, on_progress: Callable[[], None]) -> None:
        """Have `on_progress()` called from now on when a request has ended."""
        self.gateway.calls.on_progress = self._server.on_settled = on_progress

    @property
    def url(self) -> str:
        """The address on which it listens."""
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
        self._host.on_listening(self.url)
        try:
            await self._server.run(self._socket)
        finally:
            self._ended.set()

    def refuse_more(self) -> None:
        """Accept no more connections, and refuse what comes over those that are open, but for the first request of each. What was
        accepted goes on."""
        self.gateway.calls.close()
        self._remove_file()
        self._server.accept_no_more()

    @property
    def settled(self) -> bool:
        """True when every request is answered."""
        return self.gateway.calls.settled and self._server.settled

    async def finish(self, seconds: float) -> None:
        """Let the last bytes go, for at most so long. After it, nothing is sent."""
        self._server.end()
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
