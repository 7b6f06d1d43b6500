"""What a caller of plain JSON-RPC sees."""

from __future__ import annotations

from collections import Counter
from typing import Final

from msgspec import Struct

from ...client.policies.operation_kinds import ListedOperation
from ...version import __version__
from .conversation import Conversation, Implementation, Script, listed

HELLO: Final = {"clientInfo": {"name": "discreet doctor", "version": __version__}, "capabilities": {}}
"""The params of `initialize`."""


class _Welcome(Struct, frozen=True, rename="camel"):
    server_info: Implementation = Implementation()


async def talk(conversation: Conversation) -> None:
    """The handshake, and the list of the operations."""
    welcome = await conversation.ask("initialize", HELLO, type=_Welcome)
    conversation.note(f"server: {welcome.server_info}")
    operations = await conversation.ask("services/list", type=list[ListedOperation])
    kinds = Counter(operation.kind for operation in operations)
    if operations:
        conversation.note(f"{len(operations)} operations: {listed(f'{kind} {n}' for kind, n in kinds.items())}")
    else:
        conversation.note(
            "no operations are declared; an agent has none, and --dialect acp says what editors see of it", "warn"
        )


SCRIPT: Final = Script(HELLO, talk)
