"""How a conversation begins, in either generation: asks a server what it speaks and what it can do. Starts nothing.

A server of 2026-07-28 answers `server/discover`. Older ones refuse it, each in its own way, or say nothing at all; they begin
with `initialize` (2026-07-28, basic/versioning, section Backward Compatibility).
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import anyio
from msgspec import Struct

from ....client.errors import ConnectionFailed, ConnectionLoss, InvalidReply
from ....errors.codes import METHOD_NOT_FOUND
from ....errors.decoders import DECODE_ERRORS, decoder_for
from .conversation import CLIENT_INFO, LEGACY_REVISIONS, MODERN_REVISION, Agreed, Conversation, RpcError

PROBE_SECONDS: Final = 3.0
"""How long a server may take to answer `server/discover` before it counts as one that does not know it."""

UNSUPPORTED_VERSION: Final = -32022

NEWEST_LEGACY: Final = LEGACY_REVISIONS[-1]
PROBING: Final = Agreed(MODERN_REVISION)
LEGACY: Final = Agreed(NEWEST_LEGACY)
_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"


class _About(Struct, frozen=True):
    name: str = ""
    version: str = ""


class _Discovered(Struct, rename="camel"):
    supported_versions: list[str]
    capabilities: dict[str, Any] = {}  # JSON
    instructions: str = ""
    _meta: dict[str, Any] = {}


class _Welcome(Struct, rename="camel"):
    protocol_version: str
    capabilities: dict[str, Any] = {}  # JSON
    server_info: _About = _About()
    instructions: str = ""


Probed: TypeAlias = Literal["modern", "legacy", "silent"]
"""What a server said to `server/discover`. One that said nothing is in nobody knows what state."""


async def discover(conversation: Conversation) -> Probed:
    """Ask a server whether it is of the modern revision, and agree with it if so.

    Raises `ConnectionFailed`, also for one that speaks only revisions which nobody knows.
    """
    conversation.agreed = PROBING
    try:
        with anyio.fail_after(PROBE_SECONDS):
            text = await conversation.request("server/discover", {})
        found = decoder_for(_Discovered)(text)
    except RpcError as exc:
        if exc.code == UNSUPPORTED_VERSION and isinstance(exc.data, dict):
            _require_known(exc.data.get("supported"))
        return "legacy"
    except (InvalidReply, *DECODE_ERRORS):
        return "legacy"
    except (TimeoutError, ConnectionFailed):
        return "silent"
    if MODERN_REVISION not in found.supported_versions:
        _require_known(found.supported_versions)
        return "legacy"
    about = found._meta.get(_SERVER_INFO)
    name, version = (about.get("name"), about.get("version")) if isinstance(about, dict) else ("", "")
    conversation.agreed = Agreed(
        MODERN_REVISION,
        found.capabilities,
        name if isinstance(name, str) else "",
        version if isinstance(version, str) else "",
        found.instructions,
    )
    return "modern"


def _require_known(supported: object) -> None:
    if not isinstance(supported, list) or not any(each in LEGACY_REVISIONS for each in supported):
        raise ConnectionFailed(ConnectionLoss("it speaks no revision of MCP that is known here"))


async def initialize(conversation: Conversation) -> None:
    """Agree with a server of the legacy era. Raises `ConnectionFailed`."""
    conversation.agreed = LEGACY
    params = {"protocolVersion": NEWEST_LEGACY, "capabilities": {}, "clientInfo": CLIENT_INFO}
    try:
        welcome = decoder_for(_Welcome)(await conversation.request("initialize", params))
    except RpcError as exc:
        unknown = "it is no MCP server: it does not know initialize"
        reason = unknown if exc.code == METHOD_NOT_FOUND else f"it refused initialize with the error {exc.code}"
        raise ConnectionFailed(ConnectionLoss(reason)) from exc
    except InvalidReply as exc:
        raise ConnectionFailed(ConnectionLoss(f"it did not answer initialize: {exc}")) from exc
    except DECODE_ERRORS as exc:
        raise ConnectionFailed(ConnectionLoss("its answer to initialize is not as MCP has it")) from exc
    if welcome.protocol_version not in LEGACY_REVISIONS:
        raise ConnectionFailed(ConnectionLoss("it speaks no revision of MCP that is known here"))
    about = welcome.server_info
    conversation.agreed = Agreed(
        welcome.protocol_version, welcome.capabilities, about.name, about.version, welcome.instructions
    )
    await conversation.notify("notifications/initialized")
