"""Finds what the doctor says and asks in a dialect. Says nothing itself."""

from __future__ import annotations

from .conversation import Script


def script_of(dialect: str) -> Script:
    """What a client of this dialect says and asks. Raises `LookupError` for one of an installed package."""
    match dialect:  # late imports: each needs the tables of its protocol
        case "plain":
            from .plain import SCRIPT as PLAIN

            return PLAIN
        case "lsp":
            from .lsp import SCRIPT as LSP

            return LSP
        case "mcp":
            from .mcp import SCRIPT as MCP

            return MCP
        case "acp":
            from .acp import SCRIPT as ACP

            return ACP
        case _:
            raise LookupError(dialect)
