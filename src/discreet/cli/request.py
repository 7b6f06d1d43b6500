"""The request of a call: its params from the words of a command line, and who calls. Sends nothing.

A token comes from an environment variable, a file or stdin. No flag holds one: command lines are visible in `ps`, in
shell histories and in logs.
"""

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Raw

from ..client import PLAIN, Dialect
from ..client.peer import DEFAULT_TIMEOUT
from ..daemon.rpc.envelope import without_unpaired
from ..daemon.settings import UsageError
from ..daemon.settings.option import read_reference
from ..errors.decoders import decoder_for
from ..errors.printable import cut, printable
from ..framing.events import Framing

STDIN_PATH: Final = "-"
FILE_MARK: Final = "@"
"""A value that begins so is the path of a file that holds it."""

_OPENING: Final = ("{", "[")
_BYTE_ORDER_MARK: Final = "\ufeff"
"""Some shells write it before what they pipe; RFC 8259 section 8.1 lets readers ignore it."""

MAX_READ_BYTES: Final = 64 * 1024 * 1024
"""How much is read of a file or of stdin. A server takes 10 MiB in a message, unless it is told otherwise."""


class Params(msgspec.Struct, frozen=True):
    """The params of a call, and what was written for those that are JSON but no string: their operation may want the text."""

    value: Raw | dict[str, object] | None
    texts: Mapping[str, str] = {}

    def with_text(self, name: str) -> "Params":
        """Return these params with the text of this one param."""
        assert isinstance(self.value, dict)  # else there are no texts
        rest = {other: text for other, text in self.texts.items() if other != name}
        return Params({**self.value, name: self.texts[name]}, rest)

    def text_of(self, name: str) -> str | None:
        """The value of a param if it is a text; else None."""
        params: object = msgspec.json.decode(msgspec.json.encode(self.value))
        found = params.get(name) if isinstance(params, dict) else None  # else they are by position, or none
        return found if isinstance(found, str) else None


def parse_params(words: Sequence[str], text: str | None = None) -> Params:
    """Return the params that the words, or one JSON text, stand for. Reads the files that they name. Raises `UsageError`."""
    if text is not None and words:
        raise UsageError("params either with --json or as arguments, not both")
    if text == STDIN_PATH:
        text = read_text(STDIN_PATH, "--json").removeprefix(_BYTE_ORDER_MARK)
        if not text.strip():
            raise UsageError("--json: stdin is empty; it must hold a JSON object or array")
    if text is None and len(words) == 1 and words[0].lstrip()[:1] in _OPENING:
        text = words[0]
    if text is None:
        return _parse_named(words)
    try:
        params = _compact_json(text)
    except (msgspec.DecodeError, RecursionError) as exc:
        raise UsageError(f"params: {_json_fault(text, exc)}") from None
    if bytes(params)[:1] not in (b"{", b"["):
        raise UsageError("params must be a JSON object or array")
    return Params(params)


def reads_stdin(words: Sequence[str], text: str | None) -> bool:
    """Whether the params come from stdin, so that nothing else may."""
    return text == STDIN_PATH or any(word.partition("=")[2] == FILE_MARK + STDIN_PATH for word in words)


def _parse_named(words: Sequence[str]) -> Params:
    params: dict[str, object] = {}
    texts: dict[str, str] = {}
    for word in words:
        name, equals, value = require_utf8(word).partition("=")
        if not equals or not name:
            hint = _meant(words, word)
            raise UsageError(f"{word}: neither NAME=VALUE nor the only argument, a JSON object or array{hint}")
        if name in params:
            raise UsageError(f"{name}: given twice")
        if value.startswith(FILE_MARK):
            params[name] = read_text(value.removeprefix(FILE_MARK), name)
            continue
        parsed = _parse_json(value)
        params[name] = value if parsed is None else parsed
        if parsed is not None and bytes(parsed)[:1] != b'"':
            texts[name] = value
    return Params(params or None, texts)


def read_text(path: str, what: str) -> str:
    """Read a file, or stdin. `what` names the param or the flag in errors. Raises `UsageError`."""
    try:
        if path == STDIN_PATH:
            content = b"" if sys.stdin is None else sys.stdin.buffer.read(MAX_READ_BYTES + 1)
        else:
            with open(path, "rb") as file:
                content = file.read(MAX_READ_BYTES + 1)
        if len(content) > MAX_READ_BYTES:
            raise UsageError(f"{what}: more than {MAX_READ_BYTES} bytes")
        return content.decode()
    except UnicodeDecodeError as exc:
        raise UsageError(f"{what}: {path}: not UTF-8 text") from exc
    except FileNotFoundError as exc:
        meant = f"""; a text that begins with @ is written as JSON: {what}='"{FILE_MARK}{path}"'"""
        hint = "" if what.startswith("--") else meant
        raise UsageError(f"{what}: there is no file {path}{hint}") from exc
    except OSError as exc:
        raise UsageError(f"{what}: {path}: {os.strerror(exc.errno or 0)}") from exc
    except ValueError as exc:
        raise UsageError(f"{what}: not a possible path") from exc


def _meant(words: Sequence[str], word: str) -> str:
    """Return a hint for a word that is no param: what it is instead, or how JSON is written that a shell has parted."""
    if read_reference(word):
        return "; an app is given with --app"
    name = word.removesuffix(":")
    if name != word and name.isidentifier():
        return f"; write {name}=…"
    return QUOTING if words[0][:1] in _OPENING else ""


QUOTING: Final = """; names and texts stand in double quotes, and all of it between single quotes: '{"name": 1}'"""

_MAX_SHOWN: Final = 80
"""Characters of a text that is no JSON which are repeated: enough to see what a shell has done to it."""

_MALFORMED: Final = re.compile(r"JSON is malformed: (.*) \(byte (\d+)\)")
_TYPOGRAPHIC: Final = "“”„«»"


def _json_fault(text: str, exc: msgspec.DecodeError | RecursionError) -> str:
    """A phrase for a text that the decoder has refused with this error: what came, where it ends to be JSON, and a hint."""
    from ..errors.redaction import scrub  # late: only a fault needs it

    came = printable(cut(scrub(text), _MAX_SHOWN))
    if isinstance(exc, RecursionError):
        return f"nested too deeply: {came}"
    if without_unpaired(text.encode()) is not None:
        return f"no JSON: {came}: half of a surrogate pair (\\ud800 to \\udfff) is no text"
    why = "it ends too early"
    if found := _MALFORMED.fullmatch(str(exc)):
        before = text.encode()[: int(found[2])].decode(errors="ignore")
        line = f"line {before.count(chr(10)) + 1}, " if "\n" in text.strip() else ""
        why = f"{found[1]} at {line}character {len(before) - before.rfind(chr(10))}"
    if text.startswith("@"):
        hint = f"; a file is read from stdin: --json - < {came[1:]}"
    elif typographic := next((char for char in text if char in _TYPOGRAPHIC), ""):
        hint = f'; {typographic} is no quote of JSON, " is'
    else:
        hint = "" if '"' in text else QUOTING
    return f"no JSON: {came}: {why}{hint}"


def _parse_json(text: str) -> Raw | None:
    """Return the text as compact JSON, its numbers as they were written; None if it is not JSON."""
    try:
        return _compact_json(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _compact_json(text: str) -> Raw:
    decoder_for(Raw)(require_utf8(text))  # checks the grammar and leaves the numbers alone
    return Raw(msgspec.json.format(text.encode(), indent=-1))


def require_utf8(text: str) -> str:
    """Return the text unchanged. Raises `UsageError` if the shell passed bytes that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise UsageError("the arguments must be UTF-8") from exc
    return text


Progress: TypeAlias = Literal["lines", "status"]
"""How progress is shown."""


class RemoteCall(msgspec.Struct, frozen=True):
    """One call: the server to start, or the URL of one, the method and its params, and how to call it.

    `is_discreet` says that the server is `discreet serve`. `timeout` is in seconds, for the result or for each event, and
    `handshake_timeout` for each answer of a handshake; None is no limit. `retries` is how often the call may be repeated.
    `idempotent` says that repeating is harmless even if the call took effect; None leaves that to the server's list of
    operations. `framing` None is the dialect's. What the server tells of the call's progress is a line of JSON each on stderr,
    or replaces the one before on the line of a terminal; with None it is not asked to tell.
    """

    server: Sequence[str] | str
    framing: Framing | None
    method: str
    params: Params
    stream: bool
    timeout: float | None
    handshake_timeout: float | None = DEFAULT_TIMEOUT
    is_discreet: bool = False
    retries: int = 0
    idempotent: bool | None = None
    service_params: Mapping[str, str] | None = None
    dialect: Dialect = PLAIN
    progress: Progress | None = None


# -- who calls --------------------------------------------------------------------------------------------------------

AUTHORIZATION: Final = "authorization"

MAX_TOKEN_CHARS: Final = 64 * 1024
"""Signed tokens have a few thousand characters; a longer text is the wrong file."""


def read_service_params(args: argparse.Namespace) -> dict[str, str] | None:
    """Return the service params that the flags ask for, None for none. Reads the token from its variable or file, or gets one for
    the OAuth client there.

    Raises `UsageError`. Its text never contains the token.
    """
    found, credential = read_params(args), read_credential(args)
    if credential is not None:
        found[AUTHORIZATION] = with_scheme(_issued(credential))
    return found or None


def with_scheme(token: str) -> str:
    """Return the token with its scheme in front, which is Bearer if it has none (a Bearer token has no blanks: RFC 6750)."""
    return token if " " in token else f"Bearer {token}"


def _issued(credential: str) -> str:
    from ..client.oauth import AccessTokens, TokenRefused, is_oauth, parse_oauth  # late: few calls need it
    from ..lazy import anyio

    if not is_oauth(credential):
        return credential
    if parse_oauth(credential).grant == "token-exchange":
        raise UsageError("[oauth]: grant: token-exchange is for imports and bridges, which have callers")
    try:
        return anyio.run(AccessTokens().bearer, credential)
    except TokenRefused as exc:
        raise UsageError(f"the authorization server: {exc.reason}") from None


def _is_checked_client(text: str, flag: str) -> bool:
    from ..client.oauth import check_credential  # late: few calls need it

    try:
        return check_credential(text)
    except ValueError as exc:
        raise UsageError(f"{flag}: {exc}") from None


def read_params(args: argparse.Namespace) -> dict[str, str]:
    """Return what `--service-param` asks for. Raises `UsageError`."""
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
    return found


def read_credential(args: argparse.Namespace) -> str | None:
    """Return the token, with its scheme in front if that is not Bearer, or an OAuth client. Raises `UsageError`."""
    if args.token_env is not None and args.token_file is not None:
        raise UsageError("a token either with --token-env or with --token-file, not both")
    if args.token_env is not None:
        flag = f"--token-env: {args.token_env}"
        text = os.environ.get(args.token_env)
        if text is None:
            raise UsageError(f"{flag}: there is no such variable")
    elif args.token_file is not None:
        flag = f"--token-file: {args.token_file}"
        text = read_text(args.token_file, "--token-file")
    else:
        return None
    token = text.strip()
    if not token:
        raise UsageError(f"{flag}: it is empty")
    if token.startswith("[") and _is_checked_client(token, flag):
        return token
    if len(token) > MAX_TOKEN_CHARS or not token.isprintable():
        raise UsageError(f"{flag}: not a token: a token is one line of text")
    return token
