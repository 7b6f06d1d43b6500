"""Sends one push notification over HTTP, once. Retries nothing, logs nothing, follows no redirect."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, final

import msgspec

from ...a2a.types import PushConfig
from ...framing.http.retry_after import retry_after_seconds
from ...lazy import anyio
from ...version import __version__
from ..stores.interface import PushTarget

if TYPE_CHECKING:
    from ...client.outbound.connection import ResponseHead
    from ...client.outbound.network import Destination, Network
    from ...client.outbound.pool import ConnectionPool

MAX_CONNECTIONS: Final = 128
"""Open connections in all."""

MAX_CONNECTIONS_PER_HOST: Final = 8
"""It takes 16 unresponsive hosts to hold up the others, and those only for `Timeouts.total`."""

KEEP_ALIVE_SECONDS: Final = 5.0

MAX_BODY_BYTES: Final = 65_536
MAX_BODY_SECONDS: Final = 1.0
"""How much of a response's body is read, and for how long, so that its connection can be reused. Only the status counts."""

RETRYABLE_STATUSES: Final = frozenset({408, 425, 429})
"""And every 5xx: the request itself was not at fault."""

USER_AGENT: Final = f"discreet/{__version__}"

Reason: TypeAlias = Literal["address", "connection", "protocol", "timeout", "tls", "unresolved", "url"]

_REASONS: Final[Mapping[str, Reason]] = {
    "address": "address",
    "connect": "connection",
    "connect-timeout": "timeout",
    "connections": "connection",
    "lost": "connection",
    "protocol": "protocol",
    "tls": "tls",
    "unresolved": "unresolved",
}
"""What connections say, and what is told of it."""

_AUTH_SCHEME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")  # a token, RFC 9110 section 5.6.2
_FIELD_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,8190}[\x21-\x7e])?")  # RFC 9110 section 5.5


class DeliveryFailure(msgspec.Struct, frozen=True):
    """Why an attempt failed: the status of the response, or a reason. `retry_after` is what `Retry-After` says, in seconds."""

    cause: int | Reason
    retryable: bool
    retry_after: float = 0.0


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds: to connect (and as many again for TLS), for the request and the head of its response, for one attempt in all."""

    connect: float = 10.0
    read: float = 10.0
    total: float = 30.0


def find_invalid_field(config: PushConfig) -> tuple[str, str] | None:
    """The field of a config that can't be written into a header, and what is expected there; None if all can."""
    if config.token and not _FIELD_VALUE.fullmatch(config.token):
        return "token", "string of visible ASCII"
    authentication = config.authentication
    if authentication is None:
        return None
    if not _AUTH_SCHEME.fullmatch(authentication.scheme):
        return "authentication", "name of an HTTP authentication scheme"
    if authentication.credentials and not _FIELD_VALUE.fullmatch(authentication.credentials):
        return "authentication", "credentials in visible ASCII"
    return None


def request_headers(target: PushTarget) -> list[tuple[str, str]]:
    """The headers of a notification, without `Host`.

    A2A 1.0 sets the media type (section 4.3.3) and `A2A-Version` (section 3.6.1); 0.3 sets neither. The token's header is that
    of 0.3 (`PushNotificationConfig.token`); 1.0 names none, and its SDKs kept it. A scheme without credentials is not sent.
    """
    config = target.config
    is_v03 = target.protocol_version == "0.3"
    headers = [
        ("User-Agent", USER_AGENT),
        ("Content-Type", "application/json" if is_v03 else "application/a2a+json"),
    ]
    if not is_v03:
        headers.append(("A2A-Version", "1.0"))
    if config.token:
        headers.append(("X-A2A-Notification-Token", config.token))
    if config.authentication is not None and config.authentication.credentials:
        headers.append(("Authorization", f"{config.authentication.scheme} {config.authentication.credentials}"))
    return headers


@final
class NotificationSender:
    """An HTTP client for notifications. Sends at most `MAX_CONNECTIONS` at a time; waiting for a connection takes none of an
    attempt's time."""

    def __init__(self, network: Network, timeouts: Timeouts, *, allow_private: bool) -> None:
        self._network = network
        self._timeouts = timeouts
        self._allow_private = allow_private
        self._pool: ConnectionPool | None = None
        self._connections: anyio.Semaphore | None = None
        self._connections_per_host: dict[str, anyio.Semaphore] = {}

    async def send(
        self, destination: Destination, headers: list[tuple[str, str]], body: bytes
    ) -> DeliveryFailure | None:
        """One attempt. Returns None for any 2xx response. If this is cancelled, the notification may have arrived or not."""
        from ...client.outbound.connection import OutboundError  # late: loads h11

        pool = self._open_pool()
        try:
            async with self._connection_slot(destination.authority):
                with anyio.move_on_after(self._timeouts.total) as attempt:
                    return await self._exchange(pool, destination, headers, body, attempt)
        except OutboundError as exc:
            return DeliveryFailure(_REASONS[exc.reason], retryable=exc.reason != "address")
        return DeliveryFailure("timeout", retryable=True)

    async def close(self) -> None:
        """Close every connection. The next notification opens a new one."""
        if self._pool is not None:
            await self._pool.aclose()

    async def _exchange(
        self,
        pool: ConnectionPool,
        destination: Destination,
        headers: list[tuple[str, str]],
        body: bytes,
        attempt: anyio.CancelScope,
    ) -> DeliveryFailure | None:
        head: ResponseHead | None = None
        fields = [("Host", destination.authority), *headers, ("Content-Length", str(len(body)))]
        async with pool.connection(destination) as connection:
            with anyio.move_on_after(self._timeouts.read):
                await connection.send("POST", destination.request_target, fields, body)
                head = await connection.read_head()
            if head is None:
                return DeliveryFailure("timeout", retryable=True)
            attempt.deadline = math.inf  # the status is here; the body has a limit of its own
            with anyio.move_on_after(MAX_BODY_SECONDS):
                await connection.drain(MAX_BODY_BYTES)
        return _failure_of(head)

    def _open_pool(self) -> ConnectionPool:
        from ...client.outbound.pool import ConnectionPool, PoolTimeouts  # late: loads h11

        if self._pool is None:
            self._connections = anyio.Semaphore(MAX_CONNECTIONS)
            self._pool = ConnectionPool(
                allow_private=self._allow_private,
                network=self._network,
                timeouts=PoolTimeouts(connect=self._timeouts.connect),
                max_connections=MAX_CONNECTIONS,
            )
        return self._pool

    @asynccontextmanager
    async def _connection_slot(self, host: str) -> AsyncIterator[None]:
        """Holds one of the host's connections, then one of all."""
        assert self._connections is not None
        of_host = self._connections_per_host.setdefault(host, anyio.Semaphore(MAX_CONNECTIONS_PER_HOST))
        try:
            async with of_host, self._connections:
                yield
        finally:
            if of_host.value == MAX_CONNECTIONS_PER_HOST and not of_host.statistics().tasks_waiting:
                self._connections_per_host.pop(host, None)


def _failure_of(head: ResponseHead) -> DeliveryFailure | None:
    status = head.status
    if 200 <= status < 300:
        return None
    retryable = status in RETRYABLE_STATUSES or 500 <= status < 600
    said = retry_after_seconds(head.value(b"retry-after")) if retryable else None
    return DeliveryFailure(status, retryable=retryable, retry_after=said or 0.0)
