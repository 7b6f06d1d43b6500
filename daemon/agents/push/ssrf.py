"""Where push notifications may go: reads a webhook's URL, and judges every address that its name stands for.

A URL comes from whoever sets a push config, and must not make the daemon speak to machines that only the daemon can
reach (A2A 1.0 section 13.2, server-side request forgery). So nothing here is left to be read twice by two parsers: what
is judged is the very address that is then connected to. Opens no connection.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

MALFORMED: Final = "absolute http or https URL"
PRIVATE: Final = "URL of a public host"

LONGEST: Final = 8192
"""Characters of a URL; what servers commonly take."""

PORTS: Final = {"http": 80, "https": 443}

_URL: Final = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?#@\\]+)(?P<target>(?:[/?][^#\\]*)?)(?:#.*)?", re.IGNORECASE
)
_AUTHORITY: Final = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]+)(?::(?P<port>[0-9]{0,5}))?")
_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NUMBER: Final = re.compile(r"0x[0-9a-f]*|[0-9]+")


class AddressRefusedError(Exception):
    """The host has an address that is not to be spoken to."""


class Destination(msgspec.Struct, frozen=True):
    """A URL, taken apart. `host` is a name in lower case, or an address in its usual spelling and without brackets."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """What the `Host` header says (RFC 9110 section 7.2)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def aim(url: str, *, allow_private: bool) -> Destination | str:
    """Where a URL leads, or what should have been there instead of it, as a phrase.

    Only visible ASCII, no user info. A host whose last label is a number is an IPv4 address in any of the spellings that
    a resolver takes for one (the WHATWG URL standard's "ends in a number": decimal, octal, hexadecimal, one to four parts).
    """
    found = (
        _URL.fullmatch(url) if len(url) <= LONGEST and url.isascii() and url.isprintable() and " " not in url else None
    )
    parts = _AUTHORITY.fullmatch(found["authority"]) if found is not None else None
    if found is None or parts is None:
        return MALFORMED
    scheme = found["scheme"].lower()
    port = int(parts["port"] or PORTS[scheme])
    host = _host(parts["host"].lower())
    if host is None or not 0 < port < 65536:
        return MALFORMED
    if not allow_private and not (_may_be_public(host) if isinstance(host, str) else is_public(host)):
        return PRIVATE
    target = found["target"]
    return Destination(scheme, str(host), port, target if target.startswith("/") else f"/{target}")


def judge(addresses: Sequence[str], *, allow_private: bool) -> None:
    """Raises `AddressRefusedError` unless every one of the addresses may be spoken to.

    One private address among public ones is a trick, not a mishap: then none will do.
    """
    from ipaddress import ip_address  # late: only who pushes pays for it

    if not allow_private and not all(is_public(ip_address(address.partition("%")[0])) for address in addresses):
        raise AddressRefusedError


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether anybody on the internet could speak to it as well. IPv4 addresses inside IPv6 ones are judged themselves."""
    from ipaddress import IPv4Address  # late, as above

    special = _special()
    if any(address in network for network in special.refused):
        return False
    if address.version == 4:
        return address.is_global and not (address.is_multicast or address.is_reserved)
    inner = address.ipv4_mapped or (IPv4Address(int(address) & 0xFFFF_FFFF) if address in special.nat64 else None)
    if inner is not None:
        return is_public(inner)
    if address not in special.unicast or not address.is_global:
        return False
    return address.sixtofour is None or is_public(address.sixtofour)


def _host(text: str) -> str | IPv4Address | IPv6Address | None:
    from ipaddress import AddressValueError, IPv6Address  # late, as above

    if text.startswith("["):
        try:
            return IPv6Address(text[1:-1]) if "%" not in text else None  # a zone means something to this machine only
        except AddressValueError:
            return None
    name = text.removesuffix(".")
    if len(name) > 253 or not _NAME.fullmatch(name):
        return None
    return _number(name) if _NUMBER.fullmatch(name.rpartition(".")[2]) else name


def _number(name: str) -> IPv4Address | None:
    """The address that a resolver takes `name` for; None for numbers that are none."""
    from ipaddress import IPv4Address  # late, as above

    parts = name.split(".")
    if len(parts) > 4 or not all(_NUMBER.fullmatch(part) and len(part) <= 32 for part in parts):
        return None
    try:
        *high, low = [_integer(part) for part in parts]
    except ValueError:  # an 8 or a 9 in an octal number
        return None
    if any(part > 255 for part in high) or low >= 256 ** (4 - len(high)):
        return None
    return IPv4Address(low + sum(part << 8 * (3 - place) for place, part in enumerate(high)))


def _integer(digits: str) -> int:
    if digits.startswith("0x"):
        return int(digits[2:] or "0", 16)
    return int(digits, 8 if digits.startswith("0") else 10)


def _may_be_public(name: str) -> bool:
    """RFC 6761 section 6.3: these never leave the machine. Every other name is judged by its addresses, when connecting."""
    return name != "localhost" and not name.endswith(".localhost")


class _Special(msgspec.Struct, frozen=True):
    """Networks that `ipaddress` alone does not tell apart as needed."""

    unicast: IPv6Network
    nat64: IPv6Network
    refused: tuple[IPv4Network | IPv6Network, ...]


@cache
def _special() -> _Special:
    from ipaddress import IPv6Network, ip_network  # late, as above

    return _Special(
        unicast=IPv6Network("2000::/3"),  # all that IANA gives out (RFC 4291 section 2.4)
        nat64=IPv6Network("64:ff9b::/96"),  # RFC 6052: what networks without IPv4 write for an IPv4 address
        refused=tuple(
            map(
                ip_network,
                (
                    "192.0.0.0/24",  # protocol assignments; some clouds' metadata (older Pythons call parts of it global)
                    "192.88.99.0/24",  # relays of 6to4, given up by RFC 7526
                    "168.63.129.16/32",  # public by its number; inside Azure the platform's own service
                    "2001::/23",  # protocol assignments, Teredo among them
                    "3fff::/20",  # documentation, RFC 9637 (older Pythons do not know it)
                ),
            )
        ),
    )
