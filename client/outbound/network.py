"""Decides where outgoing requests may go, and opens connections only to addresses that were checked. Knows nothing of
requests.

A caller that sets a push config chooses a URL, and so does the author of a document that is imported. Neither must make the
daemon connect to hosts that only the daemon can reach (server-side request forgery, A2A 1.0 section 13.2). So a URL is parsed
once, here. A name is resolved for each connection, which goes to one of the addresses that were checked, so a later answer of
the name server changes nothing. TLS verifies the name. Proxies from the environment are not used: they hide where a request
goes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, final

import msgspec

from ...lazy import anyio

if TYPE_CHECKING:
    import ssl
    from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

    from anyio.abc import ByteStream, SocketStream

EXPECTED_URL: Final = "absolute http or https URL"
EXPECTED_PUBLIC_URL: Final = "URL of a public host"
"""The phrase for what was expected instead of a refused URL."""

MAX_URL_LENGTH: Final = 8192
"""Characters; servers commonly accept no more."""

DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?#@\\]+)(?P<target>(?:[/?][^#\\]*)?)(?:#.*)?", re.IGNORECASE
)
_AUTHORITY: Final = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]+)(?::(?P<port>[0-9]{0,5}))?")
_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_ISATAP: Final = 0x5EFE
_ISATAP_MASK: Final = 0xFDFF_FFFF  # the bit of global addresses may be set (RFC 5214 section 6.1)
_NUMBER: Final = re.compile(r"0x[0-9a-f]*|[0-9]+")


Origin: TypeAlias = tuple[str, str, int]
"""Scheme, host and port."""


class AddressRefusedError(Exception):
    """The host has an address to which no request may go."""


class Destination(msgspec.Struct, frozen=True):
    """A parsed URL. `host` is a name in lower case, or an address in canonical form without brackets.

    `request_target` is the path and the query (RFC 9112 section 3.2). `socket` is the path of a Unix socket in place of the
    host and the port.
    """

    scheme: str
    host: str
    port: int
    request_target: str
    socket: str = ""

    @property
    def origin(self) -> Origin:
        """The origin that gets the request (RFC 6454)."""
        return self.scheme, self.socket or self.host, self.port

    @property
    def shown(self) -> str:
        """The address for people, without its query, which may hold a key."""
        if self.socket:
            return f"unix:{self.socket}"
        return f"{self.scheme}://{self.authority}{self.request_target.partition('?')[0]}"

    @property
    def authority(self) -> str:
        """The value of the `Host` header (RFC 9110 section 7.2)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def parse_url(url: str, *, allow_private: bool) -> Destination | str:
    """The destination of a URL, or what was expected in its place: `EXPECTED_URL` or `EXPECTED_PUBLIC_URL`.

    A URL is visible ASCII without user info. A host whose last label is a number is an IPv4 address in any of the forms
    that resolvers accept ("ends in a number" of the WHATWG URL standard: decimal, octal, hexadecimal, one to four parts).
    """
    is_visible_ascii = url.isascii() and url.isprintable() and " " not in url
    found = _URL.fullmatch(url) if len(url) <= MAX_URL_LENGTH and is_visible_ascii else None
    parts = _AUTHORITY.fullmatch(found["authority"]) if found is not None else None
    if found is None or parts is None:
        return EXPECTED_URL
    scheme = found["scheme"].lower()
    port = int(parts["port"] or DEFAULT_PORTS[scheme])
    host = _parse_host(parts["host"].lower())
    if host is None or not 0 < port < 65536:
        return EXPECTED_URL
    if not allow_private and not (_may_be_public(host) if isinstance(host, str) else is_public(host)):
        return EXPECTED_PUBLIC_URL
    target = found["target"]
    return Destination(scheme, str(host), port, target if target.startswith("/") else f"/{target}")


def check_addresses(addresses: Sequence[str], *, allow_private: bool) -> None:
    """Raises `AddressRefusedError` unless requests may go to every one of the addresses.

    One private address refuses all: among public ones it is a sign of an attack.
    """
    from ipaddress import ip_address  # late: only daemons that push or import load it

    if not allow_private and not all(is_public(ip_address(address.partition("%")[0])) for address in addresses):
        raise AddressRefusedError


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is reachable from the whole internet. IPv4 addresses inside IPv6 ones are checked themselves."""
    from ipaddress import IPv4Address  # late, as above

    special = _special_networks()
    if any(address in network for network in special.refused):
        return False
    if address.version == 4:
        return address.is_global and not (address.is_multicast or address.is_reserved)
    low = int(address)
    embeds = address in special.nat64 or (low >> 32) & _ISATAP_MASK == _ISATAP
    inner = address.ipv4_mapped or (IPv4Address(low & 0xFFFF_FFFF) if embeds else None)
    if inner is not None and not is_public(inner):
        return False
    if address.ipv4_mapped is not None or address in special.nat64:
        return True
    return address in special.unicast and address.is_global


def _parse_host(text: str) -> str | IPv4Address | IPv6Address | None:
    from ipaddress import AddressValueError, IPv6Address  # late, as above

    if text.startswith("["):
        try:
            return (
                IPv6Address(text[1:-1]) if "%" not in text else None
            )  # a zone index has no meaning outside of this machine
        except AddressValueError:
            return None
    name = text.removesuffix(".")
    if len(name) > 253 or not _NAME.fullmatch(name):
        return None
    return _parse_ipv4(name) if _NUMBER.fullmatch(name.rpartition(".")[2]) else name


def _parse_ipv4(name: str) -> IPv4Address | None:
    """The IPv4 address that a resolver reads in `name`; None if it is not one."""
    from ipaddress import IPv4Address  # late, as above

    parts = name.split(".")
    if len(parts) > 4 or not all(_NUMBER.fullmatch(part) and len(part) <= 32 for part in parts):
        return None
    try:
        *high, low = [_parse_integer(part) for part in parts]
    except ValueError:  # an 8 or a 9 in an octal number
        return None
    if any(part > 255 for part in high) or low >= 256 ** (4 - len(high)):
        return None
    return IPv4Address(low + sum(part << 8 * (3 - index) for index, part in enumerate(high)))


def _parse_integer(digits: str) -> int:
    if digits.startswith("0x"):
        return int(digits[2:] or "0", 16)
    return int(digits, 8 if digits.startswith("0") else 10)


def _may_be_public(name: str) -> bool:
    """RFC 6761 section 6.3: these names stay on the machine. Other names are checked by their addresses, when connecting."""
    return name != "localhost" and not name.endswith(".localhost")


class _SpecialNetworks(msgspec.Struct, frozen=True):
    """Networks that `ipaddress` alone does not classify as needed."""

    unicast: IPv6Network
    nat64: IPv6Network
    refused: tuple[IPv4Network | IPv6Network, ...]


@cache
def _special_networks() -> _SpecialNetworks:
    from ipaddress import IPv6Network, ip_network  # late, as above

    return _SpecialNetworks(
        unicast=IPv6Network("2000::/3"),  # all that IANA assigns as global unicast (RFC 4291 section 2.4)
        nat64=IPv6Network("64:ff9b::/96"),  # RFC 6052: IPv4 addresses as networks without IPv4 write them
        refused=tuple(
            map(
                ip_network,
                (
                    "192.0.0.0/24",  # protocol assignments, metadata of some clouds (partly global in older Pythons)
                    "192.88.99.0/24",  # 6to4 relays, deprecated by RFC 7526
                    "168.63.129.16/32",  # a public address, but inside Azure the platform's own service
                    "2001::/23",  # protocol assignments, Teredo among them
                    "2002::/16",  # 6to4, deprecated by RFC 7526 (global in older Pythons)
                    "3fff::/20",  # documentation, RFC 9637 (unknown to older Pythons)
                ),
            )
        ),
    )


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
