"""Asks another daemon for its operations: once, before anything is served. Bounded in time and in size.

A discreet daemon tells each operation in full; any other server is asked for its OpenRPC document.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec
from msgspec import Raw, Struct

from ...client.errors import (
    AuthenticationRequired,
    ClientError,
    ConnectionFailed,
    InsufficientPermissions,
    InvalidReply,
    MethodNotFound,
    RemoteError,
)
from ...client.peer import Peer
from ...errors.decoders import decoder_for
from ...errors.printable import cut, printable
from ...errors.redaction import scrub_secrets
from ...schemas.documents import OperationSchema
from ...schemas.named_types import require_schema
from ..model import ImportFailed
from ..targets import TOO_DEEP, Command, Target, ask_in_thread
from ..tokens import UpstreamTokens
from .calls import endpoint_of, running
from .contracts import DaemonImport, import_of, read_openrpc, without_numbers

READ_SECONDS: Final = 10.0
"""How long a daemon has to start, and to tell what it offers."""

MOST_BYTES: Final = 64 * 1024 * 1024
"""Bytes that the contracts of all operations may take."""

LONGEST_NAME: Final = 200
LONGEST_REASON: Final = 1000
"""Characters of a message."""


class _Listed(Struct, frozen=True):
    name: str


def read_daemon(target: Target, *, token: str = "", seconds: float = READ_SECONDS) -> DaemonImport:
    """Ask a daemon for the operations that it offers to a caller with this token. Blocks."""
    try:
        found = ask_in_thread(partial(_ask, target, token), seconds)
    except TimeoutError:
        raise _failed(target, f"it did not tell its operations within {seconds:g} s") from None
    except ConnectionFailed as exc:
        raise _failed(target, TOO_DEEP if TOO_DEEP in exc.loss.stderr_tail else str(exc)) from exc
    except (ClientError, ValueError) as exc:
        raise _failed(target, str(exc)) from exc
    if not found.operations:
        raise _failed(target, "it offers no operation to this caller")
    return found


def _failed(target: Target, reason: str) -> ImportFailed:
    return ImportFailed(f"{_shown(target.shown, LONGEST_NAME)}: {_shown(reason, LONGEST_REASON)}")


def _shown(text: str, longest: int) -> str:
    """On one line, without secrets, and not too long. The operator's own paths stay."""
    return printable(cut(scrub_secrets(text)[0], longest))


async def _ask(target: Target, token: str) -> DaemonImport:
    service_params: dict[str, str] = {}
    if token:
        service_params["authorization"] = f"Bearer {await UpstreamTokens(target.shown).for_itself(token)}"
    if isinstance(target, Command):
        return await _ask_command(target, service_params)
    from .gateway import ask_gateway  # late: HTTP takes time to load

    return await ask_gateway(target, service_params)


async def _ask_command(command: Command, service_params: dict[str, str]) -> DaemonImport:
    endpoint = endpoint_of(service_params)
    async with running(command, endpoint, "collect") as connection:
        return await discover(endpoint.fixed_peer(connection))


async def discover(peer: Peer) -> DaemonImport:
    """Ask a server for its operations. Raises `ClientError`, and `ValueError` for a document that is none."""
    try:
        listed = await peer.call("services/list", type=list[_Listed])
    except (AuthenticationRequired, InsufficientPermissions):
        raise
    except RemoteError:  # each server has its own for a method that it does not know
        return await _document(peer)
    found: list[OperationSchema] = []
    size = 0
    for each in listed:
        try:
            text = await peer.call("services/schema", {"name": each.name}, type=Raw)
        except MethodNotFound:
            continue  # it has gone meanwhile
        size += len(memoryview(text))
        if size > MOST_BYTES:
            raise InvalidReply(f"its contracts take more than {MOST_BYTES} bytes")
        found.append(_contract(text))
    return without_numbers(import_of(found))


def _contract(text: Raw) -> OperationSchema:
    try:
        read = decoder_for(OperationSchema)(text)
        for schema in (read.input_schema, read.output_schema, *(error.schema for error in read.error_schemas)):
            require_schema(schema or {})
        return read
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        raise ValueError("its contract of an operation is not as discreet writes it") from None


async def _document(peer: Peer) -> DaemonImport:
    try:
        return read_openrpc(bytes(await peer.call("rpc.discover", type=Raw)))
    except RemoteError:
        raise ValueError(
            "it answers neither services/list nor rpc.discover: it is no daemon that can be mounted"
        ) from None
