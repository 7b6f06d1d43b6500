"""Serves the gateway on its own sockets, beside the connection over stdio or instead of it. Needs asyncio."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final, NoReturn, final

from ...daemon.apps import AppError
from ...daemon.logs import ConfiguredPath, log
from ...daemon.settings.option import read_address
from ...lazy import anyio
from ..gateway import Gateway
from .sockets import SocketFile, listen

try:
    from .protocol import HttpServer
except ModuleNotFoundError as exc:
    raise AppError(f"--http needs {exc.name}: pip install 'discreet[http]'") from None

if TYPE_CHECKING:
    from ...daemon.host import Host
    from ...daemon.settings import Settings


# Loads the files for TLS, and says which of them is wrong and why. Serves nothing.


_OTHER_KEYS: Final = frozenset({"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED"})
"""OpenSSL's reasons for a key that belongs to another certificate; the last one where it is of another algorithm."""


def _tls(settings: Settings) -> ssl.SSLContext | None:
    if settings.http_cert is not None:
        return load_certificate(settings.http_cert, settings.http_key)
    if settings.http_key is not None:
        raise AppError("--http-key needs --http-cert beside it")
    return None


def load_certificate(cert: str, key: str | None) -> ssl.SSLContext:
    """A server's context. Raises `AppError`, in one line that names the file. Never asks for a passphrase."""
    _check_readable("--http-cert", cert)
    if key is not None:
        _check_readable("--http-key", key)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cert)
    except (OSError, ValueError):
        raise AppError(f"--http-cert {cert}: there is no certificate in PEM form") from None
    flag = f"--http-cert {cert}" if key is None else f"--http-key {key}"

    def refuse() -> NoReturn:
        raise AppError(f"{flag}: the key has a passphrase; give one without")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key, refuse)
    except (OSError, ValueError) as exc:  # of ssl: its errors are both
        if getattr(exc, "reason", "") in _OTHER_KEYS:
            raise AppError(f"{flag}: the key is not that of the certificate") from None
        hint = "; --http-key names its file" if key is None else ""
        raise AppError(f"{flag}: there is no private key in PEM form{hint}") from None
    return context


def _check_readable(flag: str, path: str) -> None:
    try:
        with open(path, "rb") as file:
            file.read(1)
    except OSError as exc:
        raise AppError(f"{flag} {path}: {os.strerror(exc.errno or 0)}") from None


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
        address = read_address(settings.http or "")
        assert address is not None, "the setting is checked when it is read"
        if not (address.loopback or settings.http_open or host.access.provider is not None):
            raise AppError(
                f"--http {settings.http}: others could call it; add --token or --identity, or --http-open to let anybody"
            )
        if settings.backend == "trio":
            raise AppError("--http needs --backend asyncio or uvloop")
        self.gateway: Final = Gateway(host, local=address.loopback, address=address.host)
        self.context_backend: Final = self.gateway.context_backend
        self._host = host
        self._settings = settings
        try:
            self._server: Final = HttpServer(self.gateway, settings, host.memory, _tls(settings))
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
