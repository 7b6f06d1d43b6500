"""What a `discreet call` sends beside its params: `serviceParams`, and among them who calls.

A token is taken from where only its owner can read it. There is no flag that holds one: command lines stand in `ps`, in
the history of the shell, and in logs.
"""

import argparse
import os
import sys
from typing import Final

from ..daemon.settings import UsageError
from .params import utf8

AUTHORIZATION: Final = "authorization"

LONGEST_TOKEN: Final = 64 * 1024
"""Characters. Signed tokens have some thousands; what is longer is another file."""

STDIN: Final = "-"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Who calls, and what else travels with the call."""
    caller = parser.add_argument_group("caller")
    caller.add_argument("--token-env", metavar="NAME", help="an environment variable that holds a token to call with")
    caller.add_argument("--token-file", metavar="FILE", help="a file that holds it; - for stdin")
    caller.add_argument(
        "--service-param",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="something else that goes beside the params, such as traceparent; may be repeated",
    )


def service_params_of(args: argparse.Namespace) -> dict[str, str] | None:
    """What the flags say; None for nothing. Reads the token. Raises `UsageError`, which never shows it."""
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
        found[name] = utf8(value)
    token = _token(args)
    if token is not None:
        found[AUTHORIZATION] = token if " " in token else f"Bearer {token}"
    return found or None


def _token(args: argparse.Namespace) -> str | None:
    """The token; with its scheme before it, where that is not Bearer (RFC 6750, whose tokens hold no blanks)."""
    if args.token_env is not None and args.token_file is not None:
        raise UsageError("a token either with --token-env or with --token-file, not both")
    if args.token_env is not None:
        flag = f"--token-env: {args.token_env}"
        text = os.environ.get(args.token_env)
        if text is None:
            raise UsageError(f"{flag}: there is no such variable")
    elif args.token_file is not None:
        flag = f"--token-file: {args.token_file}"
        text = _read(args.token_file, flag)
    else:
        return None
    token = text.strip()
    if not token:
        raise UsageError(f"{flag}: it is empty")
    if len(token) > LONGEST_TOKEN or not token.isprintable():
        raise UsageError(f"{flag}: that is no token, which is one line of text")
    return token


def _read(path: str, flag: str) -> str:
    try:
        if path == STDIN:
            return "" if sys.stdin is None else sys.stdin.read(LONGEST_TOKEN + 2)
        with open(path, encoding="utf-8") as file:
            return file.read(LONGEST_TOKEN + 2)
    except OSError as exc:
        raise UsageError(f"{flag}: {os.strerror(exc.errno or 0)}") from exc
    except ValueError as exc:  # no UTF-8, or a path that can't be one
        raise UsageError(f"{flag}: that is no text") from exc
