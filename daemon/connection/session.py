"""A client's session in the dialect that it speaks: how its messages are written, and which methods it finds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

from ...errors.decoders import decoder_for
from .. import plugins
from ..logs import log
from ..operations.service import DeclarationError
from ..rpc.dialect import Dialect
from .notices import ClientConnection, DaemonControl

if TYPE_CHECKING:
    from ...framing.events import Framing
    from ..documents.store import Documents
    from ..host import Host
    from ..operations.registry import Registry
    from ..operations.request import Request
    from ..operations.spec import OperationSpec


class Session(Protocol):
    """One per connection, made when it is known what the client speaks."""

    @property
    def dialect(self) -> Dialect: ...

    @property
    def documents(self) -> Documents | None:
        """The documents that the client has open; None where the dialect has none."""
        ...

    def registry(self) -> Registry:
        """The methods of this connection alone, beside those of the hosted services. Raises `DeclarationError`."""
        ...

    def save(self) -> bytes:
        """What the next program needs to go on with the session, after a reload."""
        ...


class Plugin(Protocol):
    """The interface of a dialect's module."""

    FRAMING: Framing
    """How its messages are separated, unless the setting `framing` says otherwise."""

    HAS_SHUTDOWN: bool
    """Whether its clients say that they are about to end."""

    HAS_AGENT_METHODS: bool
    """Whether its clients can reach an agent."""

    def open_session(self, connection: ClientConnection, control: DaemonControl, saved: bytes) -> Session:
        """Begin a session, or go on with one that a program before this one has saved. Raises `DeclarationError`."""
        ...

    def check(self, host: Host) -> None:
        """Raise `DeclarationError` where what is hosted can't be served in this dialect. Opens no session: that costs more."""
        ...


class BuiltInPlugin(Plugin, Protocol):
    """A dialect that clients need not be told to speak: with `auto` their first message decides."""

    def begins_with(self, first: Request, params: Mapping[str, msgspec.Raw]) -> bool:
        """Whether a client that begins with this call, with these members of its params, speaks this dialect."""
        ...


def open_session(name: str, connection: ClientConnection, control: DaemonControl, saved: bytes = b"") -> Session:
    """Begin a session in this dialect, or go on with one that a program before this one left. Raises `DeclarationError`."""
    plugin: Plugin = plugins.load("dialect", name)
    unheard = () if plugin.HAS_SHUTDOWN else connection.host.catalogue.shutdowns
    if unheard:
        hint = f"clients of {name} send no shutdown; what must happen at the end belongs into Service(lifespan=…)"
        log.warning("shutdown.unheard", services=[spec.namespace for spec in unheard], hint=hint)
    try:
        return plugin.open_session(connection, control, saved)
    except DeclarationError as exc:
        raise with_place(exc, connection.host.catalogue.operations) from exc


def check_declarations(host: Host) -> None:
    """Raises `DeclarationError` where the services can't be served in every dialect."""
    for name in plugins.BUILT_IN["dialect"]:
        try:
            check_dialect(host, name)
        except DeclarationError as exc:
            raise DeclarationError(f"{exc} (dialect auto speaks {name}, too; choose one with --dialect)") from None


def check_dialect(host: Host, name: str) -> None:
    """Raises `DeclarationError` where what is hosted can't be served in this dialect."""
    plugin: Plugin = plugins.load("dialect", name)
    try:
        plugin.check(host)
    except DeclarationError as exc:
        raise with_place(exc, host.catalogue.operations) from exc


def with_place(exc: DeclarationError, specs: Iterable[OperationSpec]) -> DeclarationError:
    """The same error with the places of the operations that it begins with."""
    named = re.match(r"operations? (\S+?)(?::| and (\S+) )", str(exc))
    wanted = named.groups() if named else ()
    places = [spec.source for spec in specs if spec.name in wanted and spec.source]
    return DeclarationError(f"{exc} ({', '.join(places)})") if places else exc


def dialect_of(first: Request) -> str:
    """What the client speaks that begins with this message."""
    params = members_of(first.params)
    for name in plugins.BUILT_IN["dialect"]:
        plugin: BuiltInPlugin = plugins.load("dialect", name)
        if plugin.begins_with(first, params):
            return name
    return "plain"


def members_of(text: msgspec.Raw | None) -> dict[str, msgspec.Raw]:
    """The members of a JSON object; none where this is another text."""
    try:
        return decoder_for(dict[str, msgspec.Raw])(text or b"{}")
    except msgspec.DecodeError:
        return {}
