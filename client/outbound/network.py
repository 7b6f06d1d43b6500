"""Opens connections for outgoing requests, only to addresses that `ssrf` has checked. Knows nothing of requests.

A name is resolved for each connection, and the connection goes to one of the addresses that were checked, so a later answer
of the name server changes nothing. TLS verifies the name. Proxies from the environment are not used: behind a proxy, no
one could tell where a request goes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol, final

from ...lazy import anyio
from .ssrf import check_addresses

if TYPE_CHECKING:
    import ssl

    from anyio.abc import ByteStream, SocketStream

MAX_ADDRESSES: Final = 4
"""How many addresses of a name are tried, each for an equal share of the time left."""

CLOSE_SECONDS: Final = 1.0


class Network(Protocol):
    """Name resolution, connections and trust, which tests replace."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """All addresses of a name, the preferred one first. Raises `OSError`."""
        ...

    async def connect(self, address: str, port: int) -> SocketStream:
        """An open connection. Raises `OSError`. The caller limits its time."""
        ...

    def ssl_context(self) -> ssl.SSLContext:
        """The context that verifies servers. Called once, in a worker thread."""
        ...


@final
class SystemNetwork:
    """The system's resolver, network and certificate authorities. Those of certifi are added where the system has none (Python
    from python.org on macOS), or not all (Windows, which loads them when they are asked for)."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        import socket  # late, as everything that only requests need

        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(address[0]) for *_, address in found))

    async def connect(self, address: str, port: int) -> SocketStream:
        from ...framing.http import keep_alive_options  # late, as above

        stream: SocketStream = await anyio.connect_tcp(address, port)
        socket = stream.extra(anyio.abc.SocketAttribute.raw_socket)
        for option in keep_alive_options():
            socket.setsockopt(*option)
        return stream

    def ssl_context(self) -> ssl.SSLContext:
        import ssl  # late, as above
        from importlib import import_module

        context = ssl.create_default_context()
        if sys.platform != "win32" and context.cert_store_stats()["x509_ca"]:
            return context
        try:
            certificates: str = import_module("certifi").where()
        except ImportError:
            return context
        context.load_verify_locations(certificates)
        return context


async def connect_checked(
    network: Network, host: str, port: int, *, timeout: float, allow_private: bool
) -> SocketStream:
    """A connection to one of the host's addresses, all of which are checked. Names are resolved here and nowhere else.

    Raises `AddressRefusedError`, and `OSError`, of which `TimeoutError` and the resolver's errors are kinds.
    """
    deadline = anyio.current_time() + timeout
    addresses: Sequence[str] = ()
    with anyio.move_on_after(timeout):
        addresses = [host] if _is_address(host) else await network.resolve(host, port)
    check_addresses(addresses, allow_private=allow_private)
    addresses = addresses[:MAX_ADDRESSES]
    error: OSError = TimeoutError()
    for index, address in enumerate(addresses):
        share = (deadline - anyio.current_time()) / (len(addresses) - index)
        try:
            with anyio.fail_after(max(0.0, share)):
                return await network.connect(address, port)
        except OSError as exc:
            error = exc
    raise error


async def secure(stream: SocketStream, host: str, context: ssl.SSLContext, *, timeout: float) -> ByteStream:
    """The stream over TLS. Raises `OSError` and anyio's errors of streams; then, and if it is cancelled, the stream is closed."""
    from anyio.streams.tls import TLSStream  # late, as above

    try:
        with anyio.fail_after(timeout):
            return await TLSStream.wrap(stream, hostname=host, ssl_context=context, standard_compatible=False)
    except BaseException:
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_SECONDS):
            await stream.aclose()
        raise


def _is_address(host: str) -> bool:
    from ipaddress import ip_address

    try:
        ip_address(host)
    except ValueError:
        return False
    return True
