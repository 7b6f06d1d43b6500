"""Reads the schemas of operations from apps, or from a running server. Writes nothing."""

from collections.abc import Mapping, Sequence

import msgspec

from ..client import Peer, connect
from ..daemon.schemas.documents import OperationSchema
from ..daemon.settings import Settings
from ..framing.events import Framing
from .app_import import load_snapshot


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

    `timeout` is in seconds for each answer, None for no limit. Raises `ClientError`.
    """
    async with connect(command, framing=framing, timeout=timeout) as peer:
        listed = await peer.call("services/list", type=list[_OperationName], service_params=service_params)
        return [await _schema_of(peer, operation, service_params) for operation in listed]


async def _schema_of(
    peer: Peer, operation: _OperationName, service_params: Mapping[str, str] | None
) -> OperationSchema:
    return await peer.call("services/schema", operation, type=OperationSchema, service_params=service_params)
