"""What an editor sends to a language server."""

from __future__ import annotations

from typing import Any


def note(method: str, params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params or {}}


def opened(uri: str, text: str, version: int = 1) -> dict[str, Any]:
    item = {"uri": uri, "languageId": "plaintext", "version": version, "text": text}
    return note("textDocument/didOpen", {"textDocument": item})


async def shake_hands(wire: Any, **capabilities: Any) -> dict[str, Any]:
    """The result of `initialize`."""
    answer = await wire.call("initialize", {"processId": None, "rootUri": None, "capabilities": capabilities})
    await wire.send(note("initialized"))
    result: dict[str, Any] = answer["result"]
    return result
