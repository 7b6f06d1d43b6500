"""Reads the address of a database, as libpq does. Opens nothing, and shows no password."""

from __future__ import annotations

import os
from typing import Any, Final

import msgspec
import psycopg
from psycopg.conninfo import conninfo_to_dict

from ....errors.redaction import register
from ..interface import StoreError

_DEFAULTS: Final[dict[str, Any]] = {
    "application_name": "discreet",
    "client_encoding": "utf-8",
    "connect_timeout": 5,  # seconds for each host
    "keepalives_idle": 5,  # a server whose machine has died is noticed within 15 seconds
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,  # milliseconds
    "target_session_attrs": "read-write",  # of several hosts, the one that is no standby
}
"""Parameters of libpq, where neither the address nor the environment names them."""

_VARIABLES: Final = {
    "application_name": "PGAPPNAME",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
}

_SECRETS: Final = ("password", "sslpassword")


class Address(msgspec.Struct, frozen=True):
    """`label` names the database for the operator: host and name, without user or password."""

    label: str
    parameters: dict[str, Any]  # Any: libpq's parameters are strings and numbers

    def __repr__(self) -> str:
        return f"Address({self.label})"


def read_address(url: str) -> Address:
    """Registers the password with the scrubber. Raises `StoreError`, which repeats nothing of an address that is wrong."""
    path = url.partition("://")[2].partition("?")[0].partition("/")[2]
    if "@" in path:  # else libpq would take the beginning of a password for a host, and show it
        raise StoreError("the address has an @ after a /; write %2F for a / in a password, and %40 for an @ in a name")
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error:  # its text may repeat a part of the password
        raise StoreError("the address is none that PostgreSQL's libpq can read") from None
    for name in _SECRETS:
        if given.get(name):
            register(str(given[name]))
    host = str(given.get("host") or given.get("hostaddr") or "")
    if "@" in host and not host.startswith("@"):  # else libpq would show the rest of the password as a host
        raise StoreError("the address has more than one @; write %40 for one in a password")
    defaults = {name: value for name, value in _DEFAULTS.items() if _VARIABLES.get(name, name) not in os.environ}
    return Address(_label(host, given), {**defaults, **given})


def _label(host: str, given: dict[str, Any]) -> str:  # Any: as above
    service = given.get("service")
    port = f":{given['port']}" if given.get("port") else ""
    name = given.get("dbname") or (f"?service={service}" if service else "")
    return f"postgresql://{'' if host.startswith('/') else host}{port}/{name}"
