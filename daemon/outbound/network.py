"""Opens connections for outgoing requests, only to addresses that `ssrf` has checked. Knows nothing of requests.

A name is resolved for each connection, and the connection goes to one of the addresses that were checked, so a later answer
of the name server changes nothing. TLS verifies the name. Proxies from the environment are not used: behind a proxy, no
one could tell where a request goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, final  # Any: httpcore may not be installed

from ...lazy import anyio
from .ssrf import check_addresses

if TYPE_CHECKING:
    import ssl

MAX_ADDRESSES: Final = 4
"""How many addresses of a name are tried, each for an equal share of the time left."""

CLOSE_SECONDS: Final = 1.0


class Network(Protocol):
    """Name resolution, connections and trust, which tests replace."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """All addresses of a name, the preferred one first. Raises `OSError`."""
        ...

    async def connect(self, address: str, port: int, timeout: float) -> Any:
        """An open `httpcore.AsyncNetworkStream`. Raises the errors of httpcore."""
        ...

    def ssl_context(self) -> ssl.SSLContext:
        """The context that verifies servers. Called once, in a worker thread."""
        ...


@final
class SystemNetwork:
    """The system's resolver and network, and the certificate authorities of the system and of certifi."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        import socket  # late, as everything that only requests need

        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(address[0]) for *_, address in found))

    async def connect(self, address: str, port: int, timeout: float) -> Any:
        from ...framing.transports.keep_alive import keep_alive_options  # late, as above

        options = keep_alive_options()
        return await load_httpcore().AnyIOBackend().connect_tcp(address, port, timeout=timeout, socket_options=options)

    def ssl_context(self) -> ssl.SSLContext:
        context: ssl.SSLContext = load_httpcore().default_ssl_context()
        return context


@final
class CheckedBackend:
    """The network backend of httpcore's connection pool. Names are resolved here and nowhere else."""

    def __init__(self, network: Network, *, allow_private: bool) -> None:
        self._network = network
        self._allow_private = allow_private

    async def connect_tcp(self, host: str, port: int, timeout: float, **_options: object) -> Any:
        """Raises `AddressRefusedError`, the errors of the resolver, and those of httpcore."""
        httpcore = load_httpcore()
        deadline = anyio.current_time() + timeout
        addresses: Sequence[str] = ()
        with anyio.move_on_after(timeout):
            addresses = (await self._checked_addresses(host, port))[:MAX_ADDRESSES]
        error: Exception = httpcore.ConnectTimeout()
        for index, address in enumerate(addresses):
            share = (deadline - anyio.current_time()) / (len(addresses) - index)
            try:
                return _ClosingStream(await self._network.connect(address, port, max(0.0, share)))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as exc:
                error = exc
        raise error

    async def _checked_addresses(self, host: str, port: int) -> Sequence[str]:
        """All current addresses of the name, each of them checked."""
        addresses = [host] if _is_address(host) else await self._network.resolve(host, port)
        check_addresses(addresses, allow_private=self._allow_private)
        return addresses


@final
class _ClosingStream:
    """A stream that is closed when its TLS handshake fails or is cancelled. httpcore leaves its own open then."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def start_tls(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return await self._stream.start_tls(*args, **kwargs)
        except BaseException:
            with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_SECONDS):
                await self._stream.aclose()
            raise


def _is_address(host: str) -> bool:
    from ipaddress import ip_address

    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def load_httpcore() -> Any:
    """The module httpcore, which the extras `push` and `openapi` install."""
    from importlib import import_module  # late, and by name: type checkers may not have it

    return import_module("httpcore")
