"""What an editor sees of a language server (LSP 3.17): what it announces and registers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from ...client.errors import ClientError
from ...client.retry import ListedOperation
from ...dialects.lsp.capabilities import SIMILAR, alternatives, slips
from ...dialects.lsp.generated.tables import NOTIFICATIONS, OPTIONS, REQUESTS
from ...errors.decoders import convert
from ...errors.nearest import closest_match
from .conversation import CLIENT, Conversation, Implementation, listed, shown

# What of a language server's announcement an editor would pass over: members that LSP does not name.
#
# Reads the tables of the meta model. Starts nothing and asks nobody.


def unknown_members(given: Mapping[str, Any], options: str = "ServerCapabilities", path: str = "") -> Iterator[str]:
    """Yield a line for each member that LSP's struct of this name does not have, or that can't have such a value."""
    for name, value in given.items():
        where = f"{path}{name}"
        member = OPTIONS[options].get(name)
        if member is None:
            near = closest_match(name, OPTIONS[options], cutoff=SIMILAR)
            yield f"{where} is no member of LSP's {options}{_nearest(near)}; editors ignore it"
            continue
        types = alternatives(member)
        inner = [each for each in types if each in OPTIONS]
        if isinstance(value, dict) and inner:
            kinds = [list(unknown_members(value, each, f"{where}.")) for each in inner]
            yield from min(kinds, key=len)
        elif {*inner, "bool"} >= {*types} and not ("bool" in types and isinstance(value, bool)):
            yield f"{where} must be {member} in LSP"


def _nearest(near: str) -> str:
    return f"; nearest: {near}" if near else ""


_COMMANDS: Final = "executeCommandProvider"
_ALWAYS: Final = frozenset({"textDocumentSync", "positionEncoding"})
"""What every server announces."""
_SEMANTIC_TOKENS: Final[dict[str, Any]] = {
    "requests": {"full": True},
    "tokenTypes": [],
    "tokenModifiers": [],
    "formats": ["relative"],
}
"""What a client that names them at all must say."""


def _client_capabilities() -> dict[str, Any]:  # JSON
    """An editor that lets everything be registered, and knows the encodings of Neovim and Helix."""
    capabilities: dict[str, Any] = {"general": {"positionEncodings": ["utf-8", "utf-16", "utf-32"]}}
    for row in (*REQUESTS.values(), *NOTIFICATIONS.values()):
        if path := row.dynamic_registration:
            *names, last = path.split(".")
            place = capabilities
            for name in names:
                place = place.setdefault(name, {})
            place[last] = True
    capabilities["textDocument"]["semanticTokens"] |= _SEMANTIC_TOKENS
    return capabilities


def hello() -> dict[str, Any]:  # JSON
    """The params of `initialize`."""
    return {
        "processId": None,
        "clientInfo": CLIENT,
        "rootUri": None,
        "workspaceFolders": None,
        "capabilities": _client_capabilities(),
    }


class _Welcome(Struct, frozen=True, rename="camel"):
    capabilities: dict[str, Any] = {}
    server_info: Implementation = Implementation()


class _Registration(Struct, frozen=True, rename="camel"):
    method: str
    register_options: Any = None  # Any: JSON


class _Registrations(Struct, frozen=True):
    registrations: list[_Registration] = []


async def talk(conversation: Conversation) -> None:
    """The handshake, what is announced and registered, and the end."""
    registered: list[_Registration] = []

    def register(params: Any) -> None:
        registered.extend(convert(params, _Registrations).registrations)

    conversation.peer.on_request("client/registerCapability", register)
    welcome: _Welcome = await conversation.ask("initialize", hello(), type=_Welcome)
    await conversation.peer.notify("initialized", {})
    await conversation.settle("$/discreet/settle")
    announced = {name: value for name, value in welcome.capabilities.items() if value is not False}
    conversation.note(f"server: {welcome.server_info}")
    encoding = announced.get("positionEncoding", "utf-16")
    conversation.note(f"positions are {encoding} for an editor that offers utf-8, utf-16 and utf-32")
    for name in sorted(announced.keys() - _ALWAYS - {_COMMANDS}):
        conversation.note(f"announces {name}{_options(announced[name])}")
    _note_commands(conversation, announced.get(_COMMANDS))
    for one in registered:
        conversation.note(f"registers {one.method}{_options(one.register_options)}")
    for fault in unknown_members(announced):
        conversation.note(fault, "warn")
    for fault in slips(await _operations(conversation)):
        conversation.note(fault, "warn")
    if announced.keys() <= _ALWAYS and not registered:
        conversation.note("announces nothing: an editor will send documents and ask nothing", "warn")
    await conversation.ask("shutdown")
    await conversation.peer.notify("exit")


def _options(value: Any) -> str:  # Any: JSON
    return "" if value in (True, None, {}) else f" {shown(msgspec.json.encode(value).decode())}"


def _note_commands(conversation: Conversation, provider: Any) -> None:
    commands = provider.get("commands", []) if isinstance(provider, dict) else []
    if commands:
        conversation.note(f"commands: {listed(map(str, commands))}")


async def _operations(conversation: Conversation) -> list[str]:
    """The names of what the server declares. A server that takes the method for its own tells none."""
    try:
        listed_operations = await conversation.peer.call("services/list", type=list[ListedOperation])
    except ClientError:
        return []
    return [operation.name for operation in listed_operations]
