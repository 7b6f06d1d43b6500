"""What an author writes for a server, a command or a URL, as a target. Starts and reaches nothing."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence

from ....client.http.addresses import parse_address
from ....client.validation import is_url
from ..failures import ImportFailed
from .model import Command, Target, Url


def mcp_target(
    server: Sequence[str | os.PathLike[str]] | str,
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Target:
    """The server that is meant: a list of words, a line of them as a shell takes it, or a URL.

    `cwd` and `env` are for commands, `headers` for URLs. Raises `ImportFailed`.
    """
    if isinstance(server, str) and is_url(server):
        if cwd is not None or env is not None:
            raise ImportFailed("an MCP server behind a URL has neither cwd nor env")
        try:
            parse_address(server)
        except ValueError as exc:
            raise ImportFailed(f"an MCP server: {exc}") from None
        return Url(server, dict(headers or {}))
    if headers is not None:
        raise ImportFailed("an MCP server that is a command has no headers")
    try:
        words = shlex.split(server) if isinstance(server, str) else [os.fspath(word) for word in server]
    except (TypeError, ValueError):
        words = []
    if not words or not words[0] or any("\0" in word for word in words):
        raise ImportFailed("an MCP server is a command, such as ['uvx', 'mcp-server-time'], or a URL")
    return Command(tuple(words), None if cwd is None else os.fspath(cwd), dict(env or {}))
