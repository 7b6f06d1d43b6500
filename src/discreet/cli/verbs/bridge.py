"""`discreet bridge`: serves a stdio MCP server by HTTP, or an HTTP MCP server on stdin and stdout."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ...bridge import Bridge, ServerLog
from ...daemon.apps import Hosted
from ...daemon.server import serve
from ...daemon.settings import Settings, UsageError
from ...daemon.settings.resolution import require_listener
from ...errors.redaction import register
from ...flags import from_flags
from ...garbage import begin_relaying
from ...imports.model import ImportFailed
from ...imports.targets import SCHEMES, Command, Target, target_of
from ...imports.tokens import UpstreamTokens, exchanges
from ..request import AUTHORIZATION, read_credential, read_params, with_scheme
from .serve import resolved

ADDRESS = "127.0.0.1:8000"
"""Where a command is served without `--http`."""

MAX_SESSIONS = 64
"""Of one caller, where no setting says more: each is a process."""


def run(args: argparse.Namespace) -> int:
    """Serve until the end. Returns the exit status; raises `UsageError` before anything is served or started."""
    target = _target(args)
    settings = _settings(args, target)
    callers = bool(settings.jwt_issuer or settings.identity or settings.tokens)
    by_caller = callers and settings.http is not None and not args.share
    bridge = bridge_to(args, target, share=args.share, by_caller=by_caller)
    begin_relaying()
    return serve(settings, hosted=Hosted([], bridge=bridge))


def bridge_to(
    args: argparse.Namespace,
    target: Target,
    *,
    share: bool,
    by_caller: bool = False,
    server_log: ServerLog | None = None,
) -> Bridge:
    """Return the bridge to this server, with the credentials of the command line. With `by_caller`, callers are told apart, and
    the credentials may be exchanged for each. Raises `UsageError`.
    """
    params, credential = read_params(args), read_credential(args)
    if (params or credential) and isinstance(target, Command):
        raise UsageError("--token-env, --token-file and --service-param are for a server behind a URL")
    if credential:
        register(credential)
    if credential is not None and exchanges(credential) and not by_caller:
        raise UsageError("[oauth]: grant: token-exchange needs --http, --jwt-issuer or --identity, and no --share")
    by_caller = credential is not None and exchanges(credential)
    tokens = UpstreamTokens(target.shown)

    async def headers(caller: str) -> Mapping[str, str]:
        if credential is None:
            return params
        token = await tokens.for_itself(credential, caller if by_caller else "")
        return {**params, AUTHORIZATION: with_scheme(token)}

    return Bridge(target, share=share, headers=headers, server_log=server_log)


def _target(args: argparse.Namespace) -> Target:
    words, url = [*args.command], args.url
    if bool(words) == bool(url):
        raise UsageError("either a URL, or the server's command line after `--`: discreet bridge -- npx some-server")
    if url and not url.lower().startswith(SCHEMES):
        raise UsageError(f"{url}: no http(s) URL; a command line goes after `--`")
    return target_of_words("discreet bridge", url or words)


def target_of_words(kind: str, source: str | Sequence[str]) -> Target:
    """Return the server of this URL or command line. Raises `UsageError`."""
    try:
        target = target_of(kind, source, allow_private=True)
    except ImportFailed as exc:
        raise UsageError(str(exc)) from exc
    if isinstance(target, Command) and shutil.which(target.words[0]) is None:
        raise UsageError(f"can't run {target.words[0]}: there is no such command")
    return target


def _settings(args: argparse.Namespace, target: Target) -> Settings:
    found = resolved(args)
    settings = replace(found.settings, dialect="mcp", http_mcp=True, reload=False, imports=())
    if args.apps:
        raise UsageError(f"{args.apps[0]}: one argument too many")
    if isinstance(target, Command) and settings.http is None:
        settings = replace(settings, http=ADDRESS)
    if "http_max_sessions" not in found.sources:
        settings = replace(settings, http_max_sessions=MAX_SESSIONS)
    require_listener(from_flags(args), settings)
    return replace(settings, no_stdio=settings.http is not None)
