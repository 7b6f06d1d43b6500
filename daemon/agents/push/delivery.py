"""One attempt to deliver one push notification, over HTTP. Repeats nothing, logs nothing, follows no redirect."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, final  # Any: httpcore may not be installed

import msgspec

from .... import __version__
from ..model.types import PushConfig
from ..stores.interface import PushTarget
from .network import Guarded, Network, load_httpcore
from .ssrf import AddressRefusedError, Destination

if TYPE_CHECKING:
    import anyio

CONNECTIONS: Final = 128
"""Open connections in all."""

CONNECTIONS_PER_HOST: Final = 8
"""Of which one host gets so many: it takes sixteen dead hosts to hold up the others, and those for `Patience.total`."""

KEEP_ALIVE_SECONDS: Final = 5.0
IDLE_CONNECTIONS: Final = 16

REST_BYTES: Final = 65_536
REST_SECONDS: Final = 1.0
"""What is read of an answer's body, so that its connection can be used again; the answer itself is its status."""

REPEATABLE: Final = frozenset({408, 425, 429})
"""And every 5xx: the request itself was not at fault."""

USER_AGENT: Final = f"discreet/{__version__}"

Reason: TypeAlias = Literal["address", "connection", "protocol", "timeout", "tls", "unresolved", "url"]

_SCHEME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")  # a token, RFC 9110 section 5.6.2
_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,8190}[\x21-\x7e])?")  # a field value, section 5.5


class Failed(msgspec.Struct, frozen=True):
    """Why an attempt failed: the answer's status, or a reason. `after` are the seconds that `Retry-After` asks for."""

    why: int | Reason
    repeatable: bool
    after: float = 0.0


class Patience(msgspec.Struct, frozen=True):
    """Seconds: to connect (and once more for TLS), between two bytes of an answer, for one attempt in all."""

    connect: float = 10.0
    read: float = 10.0
    total: float = 30.0


def fault(config: PushConfig) -> tuple[str, str] | None:
    """Which field of a config can't be said in a header, and what is expected there; None when all can."""
    if config.token and not _VALUE.fullmatch(config.token):
        return "token", "string of visible ASCII"
    shown = config.authentication
    if shown is None:
        return None
    if not _SCHEME.fullmatch(shown.scheme):
        return "authentication", "name of an HTTP authentication scheme"
    if shown.credentials and not _VALUE.fullmatch(shown.credentials):
        return "authentication", "credentials in visible ASCII"
    return None


def headers(target: PushTarget) -> list[tuple[str, str]]:
    """What is sent beside the body.

    The media type is that of A2A 1.0 section 4.3.3, with the version of section 3.6.1; 0.3 knows neither. The header of
    the token is named by 0.3 (`PushNotificationConfig.token`), 1.0 names none, and its SDKs kept it. A scheme without
    credentials says nothing, and is not sent.
    """
    config = target.config
    modern = target.dialect != "0.3"
    found = [
        ("User-Agent", USER_AGENT),
        ("Content-Type", "application/a2a+json" if modern else "application/json"),
    ]
    if modern:
        found.append(("A2A-Version", "1.0"))
    if config.token:
        found.append(("X-A2A-Notification-Token", config.token))
    if config.authentication is not None and config.authentication.credentials:
        found.append(("Authorization", f"{config.authentication.scheme} {config.authentication.credentials}"))
    return found


@final
class Post:
    """Where notifications are handed in. At most `CONNECTIONS` at a time; waiting for one takes none of an attempt's time."""

    def __init__(self, network: Network, patience: Patience, *, allow_private: bool) -> None:
        self._network = network
        self._patience = patience
        self._allow_private = allow_private
        self._pool: Any = None
        self._opening: anyio.Lock | None = None
        self._places: anyio.Semaphore | None = None
        self._hosts: dict[str, anyio.Semaphore] = {}

    async def send(self, to: Destination, fields: list[tuple[str, str]], body: bytes) -> Failed | None:
        """One attempt: None when the answer was any 2xx. Can be cancelled; then it may or may not have arrived."""
        import anyio

        try:
            pool = await self._open()
            async with self._place(to.authority):
                with anyio.move_on_after(self._patience.total) as patience:
                    return await self._exchange(pool, to, fields, body, patience)
        except AddressRefusedError:
            return Failed("address", repeatable=False)
        except _errors() as exc:
            return Failed(_reason(exc), repeatable=True)
        return Failed("timeout", repeatable=True)

    async def close(self) -> None:
        """Close every connection. The next notification opens one anew."""
        if self._pool is not None:
            await self._pool.aclose()

    async def _exchange(
        self, pool: Any, to: Destination, fields: list[tuple[str, str]], body: bytes, patience: anyio.CancelScope
    ) -> Failed | None:
        import anyio

        limits = {"connect": self._patience.connect, "read": self._patience.read, "write": self._patience.read}
        url = load_httpcore().URL(scheme=to.scheme, host=to.host, port=to.port, target=to.target)
        request = pool.stream(
            "POST", url, headers=[("Host", to.authority), *fields], content=body, extensions={"timeout": limits}
        )
        result: Failed | None = Failed("protocol", repeatable=True)
        try:
            async with request as answer:
                result = _judged(answer.status, answer.headers)
                patience.deadline = math.inf  # the answer is here; what is left has its own bound
                with anyio.move_on_after(REST_SECONDS) as rest:
                    left = REST_BYTES
                    async for chunk in answer.aiter_stream():
                        left -= len(chunk)
                        if left < 0:
                            rest.cancel()
        except _errors():
            if patience.deadline != math.inf:
                raise
        return result

    async def _open(self) -> Any:
        import anyio

        self._opening = self._opening or anyio.Lock()
        async with self._opening:
            if self._pool is None:
                trust = await anyio.to_thread.run_sync(self._network.trust)  # reads hundreds of certificates
                self._places = anyio.Semaphore(CONNECTIONS)
                self._pool = load_httpcore().AsyncConnectionPool(
                    ssl_context=trust,
                    max_connections=CONNECTIONS,
                    max_keepalive_connections=IDLE_CONNECTIONS,
                    keepalive_expiry=KEEP_ALIVE_SECONDS,
                    network_backend=Guarded(self._network, allow_private=self._allow_private),
                )
        return self._pool

    @asynccontextmanager
    async def _place(self, host: str) -> AsyncIterator[None]:
        """One of the host's connections, then one of all."""
        import anyio

        assert self._places is not None
        places = self._hosts.setdefault(host, anyio.Semaphore(CONNECTIONS_PER_HOST))
        try:
            async with places, self._places:
                yield
        finally:
            if places.value == CONNECTIONS_PER_HOST and not places.statistics().tasks_waiting:
                self._hosts.pop(host, None)


def _judged(status: int, fields: Sequence[tuple[bytes, bytes]]) -> Failed | None:
    if 200 <= status < 300:
        return None
    repeatable = status in REPEATABLE or 500 <= status < 600
    return Failed(status, repeatable=repeatable, after=_retry_after(fields) if repeatable else 0.0)


def _retry_after(fields: Sequence[tuple[bytes, bytes]]) -> float:
    """Seconds (RFC 9110 section 10.2.3: a number of them, or a date); 0 where nothing that makes sense is said."""
    import time
    from email.utils import parsedate_to_datetime

    said = next((value.decode("latin-1").strip() for name, value in fields if name.lower() == b"retry-after"), "")
    if said.isascii() and said.isdigit():
        return float(said[:10])
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0


def _reason(exc: Exception) -> Reason:
    import socket
    import ssl

    httpcore = load_httpcore()
    if any(isinstance(cause, ssl.SSLError) for cause in (exc, *exc.args)):  # httpcore hands its cause on as an argument
        return "tls"
    if isinstance(exc, socket.gaierror):
        return "unresolved"
    if isinstance(exc, httpcore.TimeoutException):
        return "timeout"
    return "protocol" if isinstance(exc, httpcore.ProtocolError) else "connection"


def _errors() -> tuple[type[Exception], ...]:
    """What goes wrong with a connection: as httpcore says it, and as what is below it does where httpcore lets it by."""
    import anyio

    httpcore = load_httpcore()
    below = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)
    return (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, *below)
