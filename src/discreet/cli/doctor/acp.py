"""What an editor sees of an agent (ACP 1): what it can do, how the user signs in, and whether a session opens."""

from __future__ import annotations

import os
from typing import Any, Final

from msgspec import Struct

from ...client import RemoteError
from ...dialects.acp.session import PROTOCOL_VERSION
from ...dialects.acp.sessions import AUTHENTICATION_REQUIRED
from ...errors.decoders import convert
from .conversation import CLIENT, Conversation, Implementation, listed, shown

HELLO: Final = {"protocolVersion": PROTOCOL_VERSION, "clientInfo": CLIENT, "clientCapabilities": {}}
"""The params of `initialize`."""


class _Identified(Struct, frozen=True):
    """A way to sign in, a mode, or an option."""

    id: str


class _Command(Struct, frozen=True):
    name: str
    description: str = ""


class _Welcome(Struct, frozen=True, rename="camel"):
    protocol_version: int
    agent_capabilities: dict[str, Any] = {}
    auth_methods: list[_Identified] = []
    agent_info: Implementation | None = None


class _Modes(Struct, frozen=True, rename="camel"):
    available_modes: list[_Identified] = []


class _Session(Struct, frozen=True, rename="camel"):
    session_id: str
    modes: _Modes | None = None
    config_options: list[_Identified] | None = None


class _Update(Struct, frozen=True, rename="camel"):
    available_commands: list[_Command] = []


class _SessionUpdate(Struct, frozen=True):
    update: _Update


async def talk(conversation: Conversation) -> None:
    """The handshake, and a session that is opened and closed again."""
    welcome: _Welcome = await conversation.ask("initialize", HELLO, type=_Welcome)
    conversation.note(f"agent: {welcome.agent_info or Implementation()}, protocol {welcome.protocol_version}")
    conversation.note(f"can do: {listed(_said(welcome.agent_capabilities)) or 'nothing beyond text'}")
    methods = [method.id for method in welcome.auth_methods]
    conversation.note(f"ways to sign in: {listed(methods) or 'none'}")
    await _open_session(conversation, methods)


async def _open_session(conversation: Conversation, methods: list[str]) -> None:
    commands: list[_Command] = []

    def update(params: Any) -> None:
        commands.extend(convert(params, _SessionUpdate).update.available_commands)

    conversation.peer.on_notification("session/update", update)
    try:
        session: _Session = await conversation.ask("session/new", {"cwd": os.getcwd(), "mcpServers": []}, type=_Session)
    except RemoteError as exc:
        if exc.error.code != AUTHENTICATION_REQUIRED or not methods:
            raise
        return conversation.note("session/new wants the user to sign in before", "warn")
    conversation.note("session/new opens a session")
    if session.modes is not None:
        conversation.note(f"modes: {listed(mode.id for mode in session.modes.available_modes)}")
    if session.config_options:
        conversation.note(f"options: {listed(option.id for option in session.config_options)}")
    await conversation.settle("_discreet/settle")
    for command in commands:
        conversation.note(f"command /{shown(command.name)}")
    await conversation.ask("session/close", {"sessionId": session.session_id})


def _said(capabilities: dict[str, Any], path: str = "") -> list[str]:
    """The names of all capabilities that are there: `promptCapabilities.image`."""
    found: list[str] = []
    for name, value in capabilities.items():
        if isinstance(value, dict) and value:
            found += _said(value, f"{path}{name}.")
        elif value not in (False, None) and name != "_meta":
            found.append(f"{path}{name}")
    return found
