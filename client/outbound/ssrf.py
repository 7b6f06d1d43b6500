"""Decides where outgoing requests may go: parses the URL of a webhook or a server and checks every address of its host.

A caller who sets a push config chooses the URL, and so does whoever writes a document that is imported. Neither must make the
daemon connect to hosts that only the daemon can reach (server-side request forgery, A2A 1.0 section 13.2). So the URL is parsed
once, here, and the addresses that are checked are those that are connected to. Opens no connection.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

EXPECTED_URL: Final = "absolute http or https URL"
EXPECTED_PUBLIC_URL: Final = "URL of a public host"
"""What an error about a refused URL says was expected."""

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
        """Who gets what is sent (RFC 6454)."""
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
