"""Turns the words of a command line into the params of a call. Sends nothing, and knows no method."""

from collections.abc import Sequence

import msgspec
from msgspec import Raw

from ...daemon.settings import UsageError
from ...errors.type_building import decoder_for


def parse_params(words: Sequence[str], text: str | None = None) -> Raw | dict[str, object] | None:
    """Return the params that the words, or one JSON text, stand for; None if there are none. Raises `UsageError`."""
    if text is not None and words:
        raise UsageError("params either with --json or as arguments, not both")
    if text is None and len(words) == 1 and words[0].lstrip()[:1] in ("{", "["):
        text = words[0]
    if text is None:
        return _parse_named(words) or None
    params = _parse_json(text)
    if params is None or bytes(params)[:1] not in (b"{", b"["):
        raise UsageError("params must be a JSON object or array")
    return params


def _parse_named(words: Sequence[str]) -> dict[str, object]:
    params: dict[str, object] = {}
    for word in words:
        name, equals, value = require_utf8(word).partition("=")
        if not equals or not name:
            raise UsageError(f"{word}: neither NAME=VALUE nor the only argument, a JSON object or array")
        if name in params:
            raise UsageError(f"{name}: given twice")
        params[name] = value if (parsed := _parse_json(value)) is None else parsed
    return params


def _parse_json(text: str) -> Raw | None:
    """Return the text as compact JSON, its numbers as they were written; None if it is not JSON."""
    try:
        decoder_for(Raw)(require_utf8(text))  # checks the grammar and leaves the numbers alone
        return Raw(msgspec.json.format(text.encode(), indent=-1))
    except (msgspec.DecodeError, RecursionError):
        return None


def require_utf8(text: str) -> str:
    """Return the text unchanged. Raises `UsageError` if the shell passed bytes that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise UsageError("the arguments must be UTF-8") from exc
    return text
