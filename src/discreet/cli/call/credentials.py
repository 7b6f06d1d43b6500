"""The `serviceParams` that a verb sends, and among them the caller's token.

A token comes from an environment variable, a file or stdin. No flag holds one: command lines are visible in `ps`, in
shell histories and in logs.
"""

import argparse
import os
import sys
from typing import Final

from ...daemon.settings import UsageError
from .request import STDIN_PATH, require_utf8

AUTHORIZATION: Final = "authorization"

MAX_TOKEN_CHARS: Final = 64 * 1024
"""Signed tokens have a few thousand characters; a longer text is the wrong file."""


def add_credential_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say who calls, and what else is sent beside the params."""
    caller = parser.add_argument_group("caller")
    caller.add_argument("--token-env", metavar="NAME", help="the environment variable that holds the caller's token")
    caller.add_argument("--token-file", metavar="FILE", help="the file that holds the caller's token; - for stdin")
    caller.add_argument(
        "--service-param",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="another member of serviceParams, such as traceparent; may be repeated",
    )


def read_service_params(args: argparse.Namespace) -> dict[str, str] | None:
    """Return the service params that the flags ask for, None for none. Reads the token from its variable or file.

    Raises `UsageError`. Its text never contains the token.
    """
    found: dict[str, str] = {}
    for word in args.service_param:
        name, equals, value = word.partition("=")
        name = name.lower()
        if not equals or not name:
            raise UsageError(f"--service-param: {word}: not NAME=VALUE")
        if name == AUTHORIZATION:
            raise UsageError(
                "--service-param: credentials don't belong on a command line; use --token-env or --token-file"
            )
        if name in found:
            raise UsageError(f"--service-param: {name}: given twice")
        found[name] = require_utf8(value)
    token = _read_token(args)
    if token is not None:
        found[AUTHORIZATION] = token if " " in token else f"Bearer {token}"
    return found or None


def _read_token(args: argparse.Namespace) -> str | None:
    """Return the token, with its scheme in front if that is not Bearer (a Bearer token has no blanks: RFC 6750)."""
    if args.token_env is not None and args.token_file is not None:
        raise UsageError("a token either with --token-env or with --token-file, not both")
    if args.token_env is not None:
        flag = f"--token-env: {args.token_env}"
        text = os.environ.get(args.token_env)
        if text is None:
            raise UsageError(f"{flag}: there is no such variable")
    elif args.token_file is not None:
        flag = f"--token-file: {args.token_file}"
        text = _read_file(args.token_file, flag)
    else:
        return None
    token = text.strip()
    if not token:
        raise UsageError(f"{flag}: it is empty")
    if len(token) > MAX_TOKEN_CHARS or not token.isprintable():
        raise UsageError(f"{flag}: not a token: a token is one line of text")
    return token


def _read_file(path: str, flag: str) -> str:
    try:
        if path == STDIN_PATH:
            return "" if sys.stdin is None else sys.stdin.read(MAX_TOKEN_CHARS + 2)
        with open(path, encoding="utf-8") as file:
            return file.read(MAX_TOKEN_CHARS + 2)
    except OSError as exc:
        raise UsageError(f"{flag}: {os.strerror(exc.errno or 0)}") from exc
    except ValueError as exc:  # not UTF-8, or not a possible path
        raise UsageError(f"{flag}: not UTF-8 text") from exc
