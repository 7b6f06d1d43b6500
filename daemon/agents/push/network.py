"""Connections for push notifications, each to an address that was judged. Knows nothing of requests.

A name is looked up anew for each connection, and the connection goes to one of the very addresses that were judged
(`push_guard`): there is no moment at which another answer of the name server could slip in. TLS still checks the name.
Proxies that the environment names are not used: behind one, nobody could say where a notification goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, final  # Any: httpcore may not be installed

from .ssrf import judge

if TYPE_CHECKING:
    import ssl

ADDRESSES: Final = 4
"""How many of a name's addresses are tried, each for its share of the time."""

CLOSE_SECONDS: Final = 1.0


class Network(Protocol):
    """What is outside, as a seam for tests."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """All addresses of a name, the best first. Raises `OSError`."""
        ...

    async def dial(self, address: str, port: int, seconds: float) -> Any:
        """An open `httpcore.AsyncNetworkStream`. Raises the errors of httpcore."""
        ...

    def trust(self) -> ssl.SSLContext:
        """By what servers are checked. Called once, in a thread."""
        ...


@final
class SystemNetwork:
    """The machine's own resolver, network, and certificate authorities with those of certifi."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        import socket  # late, as is all that only delivering needs

        import anyio

        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(address[0]) for *_, address in found))

    async def dial(self, address: str, port: int, seconds: float) -> Any:
        return await load_httpcore().AnyIOBackend().connect_tcp(address, port, timeout=seconds)

    def trust(self) -> ssl.SSLContext:
        context: ssl.SSLContext = load_httpcore().default_ssl_context()
        return context


@final
class Guarded:
    """The backend through which httpcore connects: a name becomes addresses here, and nowhere else."""

    def __init__(self, network: Network, *, allow_private: bool) -> None:
        self._network = network
        self._allow_private = allow_private

    async def connect_tcp(self, host: str, port: int, timeout: float, **_options: object) -> Any:
        """Raises `AddressRefusedError`, and the errors of the resolver and of httpcore."""
        import anyio

        httpcore = load_httpcore()
        ends = anyio.current_time() + timeout
        addresses: Sequence[str] = ()
        with anyio.move_on_after(timeout):
            addresses = await self._addresses(host, port)
        error: Exception = httpcore.ConnectTimeout()
        for place, address in enumerate(addresses[:ADDRESSES]):
            share = (ends - anyio.current_time()) / (min(len(addresses), ADDRESSES) - place)
            try:
                return _Closing(await self._network.dial(address, port, max(0.0, share)))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as exc:
                error = exc
        raise error

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        """Those that the name stands for now, every one of them judged."""
        addresses = [host] if _is_address(host) else await self._network.resolve(host, port)
        judge(addresses, allow_private=self._allow_private)
        return addresses


@final
class _Closing:
    """A stream that is closed when its TLS handshake does not end, even by being cancelled; httpcore's own is left open then."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def start_tls(self, *args: Any, **kwargs: Any) -> Any:
        import anyio

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
    from importlib import import_module  # late, and by name: an extra, unknown to type checkers without it

    return import_module("httpcore")
