"""Reads the schemas of operations from apps, or from a running server. Writes nothing."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from ..client import InvalidReply, Peer, connect
from ..client.subscription import decode_as
from ..daemon.schemas.documents import OperationSchema
from ..daemon.settings import Settings
from ..framing.events import Framing
from .app_import import load_snapshot

MAX_OPERATIONS: Final = 10_000
"""How many operations a server may list. Each costs a call."""

MAX_SCHEMA_BYTES: Final = 64 * 1024 * 1024
"""How many bytes the schemas of a server may have together. The largest published protocols have less than one."""


class _OperationName(msgspec.Struct, frozen=True):
    """The part of a `services/list` entry that is read here."""

    name: str


def operations_of_apps(settings: Settings) -> list[OperationSchema]:
    """Return the external operations that `discreet serve` would host with these settings.

    Imports the apps. Raises `UsageError` for apps that can't be hosted.
    """
    return list(load_snapshot(settings).operations.values())


async def operations_of_server(
    command: Sequence[str],
    *,
    framing: Framing,
    timeout: float | None,
    service_params: Mapping[str, str] | None,
) -> list[OperationSchema]:
    """Start a server and return the operations that it lists for a caller with these service params.

    `timeout` is in seconds for each answer, None for no limit. Raises `ClientError`; `InvalidReply` also for a server that
    lists more than `MAX_OPERATIONS` or describes them in more than `MAX_SCHEMA_BYTES`.
    """
    async with connect(command, framing=framing, timeout=timeout) as peer:
        listed = await peer.call("services/list", type=list[_OperationName], service_params=service_params)
        if len(listed) > MAX_OPERATIONS:
            raise InvalidReply(f"the server lists {len(listed)} operations; at most {MAX_OPERATIONS} are asked for")
        return await _schemas_of(peer, listed, service_params)


async def _schemas_of(
    peer: Peer, listed: Sequence[_OperationName], service_params: Mapping[str, str] | None
) -> list[OperationSchema]:
    found: list[OperationSchema] = []
    size = 0
    for operation in listed:
        text = await peer.call("services/schema", operation, type=msgspec.Raw, service_params=service_params)
        size += memoryview(text).nbytes
        if size > MAX_SCHEMA_BYTES:
            raise InvalidReply(f"the server's schemas have more than {MAX_SCHEMA_BYTES} bytes")
        found.append(decode_as(text, OperationSchema, "services/schema"))
    return found
