"""Lets code call a server of MCP for as long as a block runs: one that an editor passes to its agent. Makes no service of it.

Loads when the first of them is reached.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, final

import anyio

from ...awaited import refuses_bool
from ...client.errors import ClientError, ConnectionFailed, ConnectionLoss, InvalidReply, RemoteError, remote_error
from ...errors.decoders import DECODE_ERRORS, decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import DomainFailure
from ...errors.nearest import nearest_hint
from ...errors.wire import encode_error
from ..archive import ImportArchive, pack
from ..model import ImportFailed, UpstreamError
from ..targets import Target, target_of
from .model import McpImport, McpOperation
from .server_messages import ServerMessages
from .session import Opener, Session, list_again
from .upstream import mirrored_values, params_of, read_result, server_error


@asynccontextmanager
async def open_tools(server: Mapping[str, Any], *, cwd: str) -> AsyncGenerator[Tools]:  # Any: JSON
    """Start a server, or reach it, and ask what it offers. `server` is its entry in `mcpServers` of ACP, `cwd` the directory of
    a command. See `agents.editor.Editor.mcp`.
    """
    target = _target_of(server, cwd)
    async with Opener(target, ServerMessages(server["name"])).open() as session:
        try:
            found = await list_again(session, target)
        except (RemoteError, InvalidReply) as exc:
            raise ConnectionFailed(ConnectionLoss(f"it did not list what it offers: {type(exc).__name__}")) from exc
        yield Tools(session, found)


def _target_of(server: Mapping[str, Any], cwd: str) -> Target:
    what = f"the MCP server {server['name']!r}"
    match server.get("type", "stdio"):
        case "stdio":
            words = [server["command"], *server["args"]]
            return target_of(what, words, cwd=cwd, env=_by_name(server["env"]))
        case "http":
            return target_of(what, server["url"], headers=_by_name(server["headers"]), allow_private=True)
        case kind:
            raise ImportFailed(f"{what} is of the type {kind}, which is not spoken; it may be a command or http")


def _by_name(entries: list[dict[str, str]]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in entries}


@final
class Tools:
    """See `agents.editor.McpTools`."""

    def __init__(self, session: Session, found: McpImport) -> None:
        self._session = session
        self._archive: Final = ImportArchive(pack(found), McpImport, McpOperation)
        self._operations = {each.name: each for each in found.operations}

    @property
    def operations(self) -> Mapping[str, Mapping[str, Any]]:
        return {
            name: {"description": each.description, "input": self._archive.document(each.input)}
            for name, each in self._operations.items()
        }

    @refuses_bool
    async def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, type: Any = Any, timeout: float | None = None
    ) -> Any:
        operation = self._operations.get(name)
        if operation is None:
            raise LookupError(f"the server has no {name!r}{nearest_hint(name, self._operations)}")
        given = dict(arguments or {})
        params, target = params_of(operation, given)
        mirrored = mirrored_values(operation.mirrored, given)
        with anyio.fail_after(timeout):
            try:
                text = await self._session.request(operation.method, params, name=target, mirrored=mirrored)
                result = read_result(operation, text)
            except RemoteError as exc:
                raise _refusal(operation, server_error(exc)) from exc
            except (UpstreamError, FailureError) as exc:
                raise _refusal(operation, exc) from None
        try:
            return decoder_for(type)(result)
        except DECODE_ERRORS:  # their text quotes the answer
            pass
        raise InvalidReply(f"the result of {name} is of another type")


def _refusal(operation: McpOperation, exc: UpstreamError | FailureError) -> ClientError:
    """The error that an operation answers with, as clients raise it."""
    failure = exc.failure if isinstance(exc, FailureError) else _declared(operation, exc)
    return remote_error(encode_error(failure))


def _declared(operation: McpOperation, exc: UpstreamError) -> DomainFailure:
    declared = next((each for each in operation.errors if each.code == exc.code), None)
    message = exc.code if declared is None else declared.message
    return DomainFailure(exc.code, message, details=exc.details)
