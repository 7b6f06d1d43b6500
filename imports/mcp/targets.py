"""What an author writes for a server, a command or a URL, as a target. Starts and reaches nothing."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Final, TypeAlias

from ...client.outbound.ssrf import EXPECTED_PUBLIC_URL, parse_url
from ..failures import ImportFailed
from .model import Command, Target, Url

Server: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_SCHEMES: Final = ("http://", "https://")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_LIBRARIES: Final = ("h11", "httpcore")
"""What HTTP needs."""


def mcp_target(
    server: Server,
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    allow_private: bool = True,
) -> Target:
    """The server that is meant: a list of words, a line of them as a shell takes it, or a URL.

    `cwd` and `env` are for commands, `headers` and `allow_private` for URLs. Raises `ImportFailed`.
    """
    if isinstance(server, str) and server.lower().startswith(_SCHEMES):
        if cwd is not None or env is not None:
            raise ImportFailed("an MCP server behind a URL has neither cwd nor env")
        found = parse_url(server, allow_private=allow_private)
        if found == EXPECTED_PUBLIC_URL:
            raise ImportFailed(
                f"{server.partition('?')[0]}: an MCP server needs a URL of a public host, and this address is private;"
                " allow_private=True (--import-private, or allow-private = true in a settings file) allows it"
            )
        if isinstance(found, str):
            raise ImportFailed(f"an MCP server needs an {found}, or a command")
        if missing := [name for name in _LIBRARIES if find_spec(name) is None]:
            raise ImportFailed(
                f"an MCP server behind a URL needs {' and '.join(missing)}: pip install 'discreet[http]'"
            )
        return Url(server, dict(headers or {}), allow_private)
    if isinstance(server, str) and _SCHEME.match(server):
        raise ImportFailed(f"{server.partition('?')[0]}: an MCP server is a command or an http(s) URL")
    if headers is not None:
        raise ImportFailed("an MCP server that is a command has no headers")
    try:
        words = shlex.split(server) if isinstance(server, str) else _words(server)
    except (TypeError, ValueError):
        words = []
    if not words or not words[0] or any("\0" in word for word in words):
        raise ImportFailed("an MCP server is a command, such as ['uvx', 'mcp-server-time'], or a URL")
    return Command(tuple(words), None if cwd is None else os.fspath(cwd), dict(env or {}))


def _words(server: os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    return [os.fspath(server)] if isinstance(server, os.PathLike) else [os.fspath(word) for word in server]
