"""Words of a command line as the params of a call. Sends nothing, and knows no method."""

from collections.abc import Sequence

import msgspec
from msgspec import Raw

from ..daemon.settings import UsageError
from ..errors.type_building import decoder_for


def params_of(words: Sequence[str], text: str | None = None) -> Raw | dict[str, object] | None:
    """The params that the words, or the one JSON text, stand for; None for none. Raises `UsageError`."""
    if text is not None and words:
        raise UsageError("params either with --json or as arguments, not both")
    if text is None and len(words) == 1 and words[0].lstrip()[:1] in ("{", "["):
        text = words[0]
    if text is None:
        return _named(words) or None
    params = _as_json(text)
    if params is None or bytes(params)[:1] not in (b"{", b"["):
        raise UsageError("params must be a JSON object or array")
    return params


def _named(words: Sequence[str]) -> dict[str, object]:
    params: dict[str, object] = {}
    for word in words:
        name, equals, value = utf8(word).partition("=")
        if not equals or not name:
            raise UsageError(f"{word}: neither NAME=VALUE nor the only argument, a JSON object or array")
        if name in params:
            raise UsageError(f"{name}: given twice")
        params[name] = value if (parsed := _as_json(value)) is None else parsed
    return params


def _as_json(text: str) -> Raw | None:
    """The text as compact JSON, its numbers as they were written; None when it is no JSON."""
    try:
        decoder_for(Raw)(utf8(text))  # checks the grammar and leaves the numbers alone
        return Raw(msgspec.json.format(text.encode(), indent=-1))
    except (msgspec.DecodeError, RecursionError):
        return None


def utf8(text: str) -> str:
    """The same text. Raises `UsageError` for what the shell could not give as text."""
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise UsageError("the arguments must be UTF-8") from exc
    return text
