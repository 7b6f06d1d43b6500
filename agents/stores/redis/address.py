"""Reads the address of a server, as redis-py writes it. Opens nothing, and shows no password."""

from __future__ import annotations

import os
import re
from typing import Any, Final
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

import msgspec

from ....errors.redaction import register
from ..interface import StoreError

DEFAULT_PORT: Final = 6379
DEFAULT_PREFIX: Final = "discreet"
PASSWORD_VARIABLE: Final = "REDISCLI_AUTH"
"""Holds the password where the address has none."""

_SECRETS: Final = ("password", "ssl_password")
_BOOLEANS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_TEXTS: Final = (
    "username password client_name ssl_keyfile ssl_certfile ssl_password ssl_cert_reqs ssl_ca_certs ssl_ca_path"
    " ssl_ca_data ssl_ciphers"
)
_OPTIONS: Final = frozenset((*_TEXTS.split(), "ssl_check_hostname", "db", "prefix"))
"""What may stand behind the question mark: parameters of redis-py, and `prefix`."""

_is_prefix: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}").fullmatch


class Address(msgspec.Struct, frozen=True):
    """`label` names the database for the operator: without user or password. `options` are those of redis-py's connections.

    All keys begin with `{prefix}:`. The braces make it their hash tag: in a cluster they are all in one slot, and so on one
    node, where a script changes them at once. So a store is as large as one node; several stores spread over the nodes.
    """

    label: str
    prefix: str
    scheme: str
    host: str
    port: int
    options: dict[str, Any]  # Any: strings, numbers, booleans

    def __repr__(self) -> str:
        return f"Address({self.label})"

    def key(self, name: str) -> str:
        return f"{{{self.prefix}}}:{name}"


def read_address(url: str) -> Address:
    """Registers the password with the scrubber. Raises `StoreError`, which repeats nothing of an address that is wrong."""
    try:
        parts = urlsplit(url)
        given = {name: values[-1] for name, values in parse_qs(parts.query, strict_parsing=bool(parts.query)).items()}
        host, port = unquote(parts.hostname or "localhost"), parts.port or DEFAULT_PORT
    except ValueError:  # its text may repeat a part of the password
        raise StoreError("the address is not redis://USER:PASSWORD@HOST:PORT/DATABASE") from None
    given = _credentials(parts) | given
    for name in _SECRETS:
        if given.get(name):
            register(given[name])
    if unknown := sorted(given.keys() - _OPTIONS):
        raise StoreError(f"the address has {len(unknown)} unknown parameters; it takes {', '.join(sorted(_OPTIONS))}")
    database = given.pop("db", "") or ("" if parts.scheme == "unix" else parts.path.strip("/")) or "0"
    prefix = given.pop("prefix", DEFAULT_PREFIX)
    if not (database.isascii() and database.isdigit() and len(database) < 6):
        raise StoreError("the database in the address is not a number; the first one is redis://HOST/0")
    if not _is_prefix(prefix):
        raise StoreError("the prefix in the address must be 1 to 64 letters, digits, or any of . _ : -")
    options = _options(parts.scheme, given) | {"db": int(database)}
    if parts.scheme == "unix":
        options["path"] = unquote(parts.path)
    where = unquote(parts.path) if parts.scheme == "unix" else f"{host}:{port}/{int(database)}"
    label = f"{parts.scheme}://{where}" + (f" with prefix {prefix}" if prefix != DEFAULT_PREFIX else "")
    return Address(label, prefix, parts.scheme, host, port, options)


def _credentials(parts: SplitResult) -> dict[str, str]:
    found = {"username": unquote(parts.username or ""), "password": unquote(parts.password or "")}
    found["password"] = found["password"] or os.environ.get(PASSWORD_VARIABLE, "")
    return {name: value for name, value in found.items() if value}


def _options(scheme: str, given: dict[str, str]) -> dict[str, Any]:  # Any: as above
    options: dict[str, Any] = dict(given)
    if scheme != "rediss" and any(name.startswith("ssl_") for name in given):
        raise StoreError("the address has parameters of TLS; one with TLS begins with rediss://")
    if "ssl_check_hostname" in given:
        known = _BOOLEANS.get(given["ssl_check_hostname"].lower())
        if known is None:
            raise StoreError("ssl_check_hostname in the address must be true or false")
        options["ssl_check_hostname"] = known
    if given.get("ssl_cert_reqs", "required") not in ("none", "optional", "required"):
        raise StoreError("ssl_cert_reqs in the address must be none, optional or required")
    if given.get("ssl_cert_reqs") == "none":
        options.setdefault("ssl_check_hostname", False)
    return options
