"""How an operation of another daemon is called. Structs only."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from ..model import Imported, ImportedOperation


class DaemonOperation(ImportedOperation, frozen=True, kw_only=True):
    """`method` is its name there. A server that takes params by position alone gets them in the order of `positions`. `codes` are
    those of errors that the server tells apart by their JSON-RPC numbers.
    """

    method: str
    positions: tuple[str, ...] | None = None
    codes: Mapping[int, str] = {}


class DaemonImport(Imported, frozen=True, kw_only=True):
    """What another daemon offers. `url` is the address that its OpenAPI document names; empty for a command. `native` is whether
    it is one of discreet, which checks params and results itself.
    """

    operations: tuple[DaemonOperation, ...] = ()
    url: str = ""
    native: bool = True


class Command(Struct, frozen=True):
    """A daemon that is started. `env` is added to this process's own environment, without the settings of discreet in it."""

    words: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        """The command as messages show it."""
        return shlex.join(self.words)


class Url(Struct, frozen=True):
    """A gateway that serves operations, by its address. With `allow_private` that may be one of this network or this machine."""

    url: str
    allow_private: bool = False

    @property
    def name(self) -> str:
        """The address without its query, which may hold a secret."""
        return self.url.partition("?")[0]


Target: TypeAlias = Command | Url
