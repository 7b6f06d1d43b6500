"""Serves the gateway on its own sockets, beside the connection over stdio or instead of it. Needs asyncio, as uvicorn does."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final, NoReturn, final

from ...daemon.apps import AppError
from ...daemon.logs import ConfiguredPath, log
from ...daemon.settings.option import read_address
from ...lazy import anyio
from ..answers import Answer
from ..gateway import Gateway
from .sockets import SocketFile, listen

try:
    import uvicorn

    from .protocols import Limits, protocol_factory
except ModuleNotFoundError as exc:
    raise AppError(f"--http needs {exc.name}: pip install 'discreet[http]'") from None

if TYPE_CHECKING:
    from ...daemon.host import Host
    from ...daemon.memory import MemoryBudget
    from ...daemon.settings import Settings
    from ..asgi import Receive, Scope, Send


# Refuses requests that two readers could understand in two ways, and heads that are too large: what the parsers let pass.
#
# A proxy or a cache in front must see the same requests as the gateway (RFC 9112, section 11.2).


_ONCE: Final = (b"host", b"content-length", b"transfer-encoding", b"authorization", b"content-type")
"""Headers of which a second one could be read by somebody else."""
_HEAD_TOO_LARGE: Final = 431
_LINE_BYTES: Final = 4
"""Bytes of a header line beside its name and its value: the colon, a blank, and the line's end."""


@final
class StrictHttp:
    """An ASGI app around another. Refused requests are the last ones of their connection. `head_bytes` limits the head."""

    def __init__(self, app: Gateway, head_bytes: int) -> None:
        self._app = app
        self._head_bytes = head_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status = self._refusal(scope) if scope["type"] == "http" else 0
        if not status:
            return await self._app(scope, receive, send)
        if status == _HEAD_TOO_LARGE:
            log.info("http.head_too_large")
        else:
            log.info("http.malformed", status=status)
        await Answer(status, media_type="", headers={"connection": "close"}).send(send)

    def _refusal(self, scope: Scope) -> int:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if scope["http_version"] not in ("1.0", "1.1"):
            return 505
        size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        if size + sum(len(name) + len(value) + _LINE_BYTES for name, value in headers) > self._head_bytes:
            return _HEAD_TOO_LARGE
        if not (scope.get("raw_path") or b"/").startswith((b"/", b"*")):
            return 400
        names = [name for name, _ in headers]
        if any(names.count(name) > 1 for name in _ONCE):
            return 400
        given = dict(headers)
        if b"host" not in given and scope["http_version"] == "1.1":
            return 400
        return _framing_refusal(given, scope["http_version"])


def _framing_refusal(headers: dict[bytes, bytes], version: str) -> int:
    """How the body's end is told (RFC 9112, section 6)."""
    coding = headers.get(b"transfer-encoding")
    if coding is None:
        return 0
    if coding.strip().lower() != b"chunked":
        return 501
    return 400 if b"content-length" in headers or version == "1.0" else 0


# Loads the files for TLS, and says which of them is wrong and why. Serves nothing.


_OTHER_KEYS: Final = frozenset({"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED"})
"""OpenSSL's reasons for a key that belongs to another certificate; the last one where it is of another algorithm."""


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


IDLE_SECONDS: Final = 75
"""How long a connection may stay open between two requests. Longer than the 60 s of common proxies, which then close first."""


@final
class _Server(uvicorn.Server):
    """Leaves signals to the daemon."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


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


def _config(gateway: Gateway, memory: MemoryBudget, settings: Settings) -> uvicorn.Config:
    """Raises `AppError` for a certificate that is none."""
    limits = Limits(
        head_seconds=settings.frame_timeout,
        write_seconds=settings.frame_timeout,
        head_bytes=settings.max_header_bytes,
        connections_per_address=settings.http_max_connections,
    )
    if settings.http_key is not None and settings.http_cert is None:
        raise AppError("--http-key needs --http-cert beside it")
    tls = None if settings.http_cert is None else load_certificate(settings.http_cert, settings.http_key)
    errors = logging.getLogger("uvicorn.error")
    errors.setLevel(logging.ERROR)  # what it says below that, our own events say
    errors.addFilter(_is_fault)
    return uvicorn.Config(
        StrictHttp(gateway, settings.max_header_bytes),
        http=protocol_factory(limits, memory, tls),  # type: ignore[arg-type] # it is called, not more
        loop="none",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS,
    )
