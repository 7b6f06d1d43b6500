"""From an MCP server to a service: asks it what it offers, or takes what the cache has of it, and joins it with what calls it."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from time import time
from typing import Final

import msgspec
from msgspec import UNSET, Struct

from ..daemon.operations.service import Service
from ..daemon.operations.spec import Timeout
from ..version import __version__
from .arguments import check_arguments, check_expose, tell_notes
from .cache import keep, read_cached
from .mcp.model import McpImport, McpOperation, Target
from .mcp.selection import Choice
from .mcp.service import mcp_service
from .mcp.targets import Server, mcp_target
from .packed import Packed, pack
from .service import ImportOptions, Validate
from .validation import require_validator

READ_SECONDS: Final = 10.0


def from_mcp(  # noqa: PLR0913 - what can be said of an import
    server: Server,
    *,
    namespace: str,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    credential: str = "",
    token: str = "",
    include: Collection[str] = (),
    exclude: Collection[str] = (),
    rename: Mapping[str, str] | None = None,
    expose: bool | Sequence[str] = False,
    scopes: Sequence[str] = (),
    validate: Validate = "on",
    timeout: Timeout = UNSET,
    allow_private: bool = True,
    max_age: float = 0.0,
) -> Service:
    """A service with the tools, resources and prompts of an MCP server, which is a command or a URL (Streamable HTTP).

    The operations are called `namespace/name`. A command is started now, for at most 10 s, to ask what it offers, and again with
    the first call; it ends with the daemon. `cwd` and `env` are as in `subprocess.Popen`, but that `env` is added to the
    daemon's own without its settings. To a URL, `headers` are sent with each request, and of the app's credentials the one
    that `credential` names, as a bearer token. `token` is one for now, as the daemon has no credentials yet. Private addresses
    are refused with `allow_private=False`.

    Imported are the operations whose names fit a pattern of `include`, if there is any, and none of `exclude`. `rename` has new
    names by name. Those that `expose` has a pattern for can be called from outside, all of them for True; the others by
    operations of the daemon alone. A caller needs all of `scopes`. All of this holds for what the server offers later, too.

    Params and answers are checked against the server's schemas: `validate` says whether what does not fit is an error, a line
    in the log, or nothing. `timeout` is in seconds, as that of an operation. What was read is used again for `max_age` seconds;
    then the server is started with the first call alone.

    Raises `DeclarationError`: a wrong argument, or a server that can't be asked, in one line. Blocks while the server is asked.
    """
    require_validator("mcp")
    check_arguments(
        namespace,
        {
            "env": env,
            "headers": headers,
            "credential": credential,
            "token": token,
            "include": include,
            "exclude": exclude,
            "rename": rename,
            "expose": expose,
            "scopes": scopes,
            "validate": validate,
            "timeout": timeout,
            "allow_private": allow_private,
            "max_age": max_age,
        },
    )
    target = mcp_target(server, cwd=cwd, env=env, headers=headers, allow_private=allow_private)
    choice = Choice(tuple(include), tuple(exclude), dict(rename or {}))
    data = _data(target, namespace, token, choice, max_age)
    packed = Packed(data, McpImport, McpOperation)
    check_expose(expose, [entry.name for entry in packed.entries], rename)
    tell_notes(namespace, packed.head.notes, len(packed.entries))
    options = ImportOptions(
        expose=expose,
        validate=validate,
        timeout=timeout,
        scopes=scopes,
        credentials=[credential] if credential else [],
    )
    return mcp_service(namespace, target, data, options, select=choice.of, credential=credential or None)


class _Key(Struct, frozen=True, array_like=True):
    """What decides what an import is."""

    version: str
    target: Target
    token: str
    choice: Choice


def _data(target: Target, namespace: str, token: str, choice: Choice, max_age: float) -> bytes:
    key = msgspec.msgpack.encode((type(target).__name__, _Key(__version__, target, token, choice)))
    cached = read_cached(key) if max_age > 0 else None
    if cached is not None and 0 <= time() - cached.made < max_age:
        return cached.data
    from .mcp.read import read_mcp  # late: what the cache has is not asked for

    data = pack(choice.of(read_mcp(target, namespace, token=token or None, seconds=READ_SECONDS), strict=True))
    if max_age > 0:
        keep(key, data, {})
    return data
