"""Renders an event as one scrubbed line. Only the writer thread imports and runs it, since it loads structlog.

The order: scrub every field, cut it and scrub the rest, render, scrub the line. Data of a caller can't end a line, colour
it or look like a field: in every form values are quoted, and what is not printable is escaped.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Final, final

from ...errors.printable import printable, printable_json
from ...errors.redaction import load_environment, scrub, scrub_exception, scrub_fields
from ...errors.redaction.marks import CUT, REDACTED
from .line import encode_line, safe_name, standard_fields
from .queue import LogEvent
from .sink import Form

MAX_FIELD: Final = 8 * 1024
"""Characters of one field, nested values included. A longer one is scrubbed, cut and scrubbed again."""

_TRACEBACK_HEAD: Final = 2 * 1024
"""How many characters of the beginning of a too long traceback are kept."""

_FIRST: Final = ("method", "id")

_RESERVED: Final = frozenset({"timestamp", "level", "event", "stack", "exception", "exc_info"})
"""Names that the line or structlog's renderers use. A field of such a name gets an underscore."""

_BARE: Final = re.compile(r'[^\s="\\]+')


@final
class Renderer:
    """Renders for one sink. Its constructor loads the scrubber's environment and structlog: tens of milliseconds."""

    def __init__(self, form: Form, *, color: bool, environ: Mapping[str, str]) -> None:
        load_environment(environ)
        self._form: Form = form
        self._plain = _text_renderer(form, color=False)
        self._colored = _text_renderer(form, color=True) if color and form == "console" else None

    def line(self, event: LogEvent) -> bytes:
        """The line with its end. Raises what a value's own code raises; `line.fallback_line` serves then."""
        entry: dict[str, object] = {**standard_fields(event), **_fields(event.fields)}
        text = printable_json(self._json(entry)) if self._form == "json" else self._text(entry)
        return encode_line(text, self._form, event)

    def _text(self, entry: dict[str, object]) -> str:
        shown = {key: _Verbatim(_quote(value)) for key, value in entry.items()}
        text = self._plain(shown)
        safe = scrub(text)
        if safe != text:
            return printable(safe)
        return text if self._colored is None else self._colored(shown)

    def _json(self, entry: dict[str, object]) -> str:
        text = self._plain(entry)
        safe = scrub(text)
        if safe != text and not _is_json(safe):
            # With its quotes and escapes, something looks like a secret, and removing it breaks the JSON: remove all text.
            return self._plain(
                {name: value if name in _RESERVED else _without_text(value) for name, value in entry.items()}
            )
        return safe


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _without_text(value: object) -> object:
    return REDACTED if isinstance(value, str | dict | list) else value


def _text_renderer(form: Form, *, color: bool) -> Callable[[Mapping[str, object]], str]:
    """structlog's renderer for a form. It changes the mapping that it gets, so it gets a copy."""
    from structlog.dev import ConsoleRenderer
    from structlog.processors import JSONRenderer, KeyValueRenderer

    match form:
        case "console":
            console = ConsoleRenderer(colors=color, sort_keys=False, repr_native_str=True)
            return lambda entry: console(None, "", dict(entry))
        case "json":
            to_json = JSONRenderer()
            return lambda entry: str(to_json(None, "", dict(entry)))
        case "keyvalue" | "journald":
            keyvalue = KeyValueRenderer(repr_native_str=True)
            return lambda entry: keyvalue(None, "", dict(entry))


def _fields(fields: Mapping[str, object]) -> dict[str, object]:
    """The fields scrubbed and cut, under names that can't be taken for the line's own; `method` and `id` first."""
    rest = {name: _id(value) if name == "id" else value for name, value in fields.items()}
    exc = fields.get("exc")
    if exc is None or isinstance(exc, BaseException):
        rest.pop("exc", None)
    seen = scrub_fields(rest, cap=MAX_FIELD)
    assert isinstance(seen, dict)  # as every mapping becomes one
    names = sorted(seen, key=lambda name: name not in _FIRST)  # stable: the others keep their order
    result = {_key(name): _cut(seen[name]) for name in names}
    if isinstance(exc, BaseException):
        result["exc"] = _cut_traceback(scrub_exception(exc).rstrip())
    return result


def _id(value: object) -> object:
    """A request's id, which may come as the bytes of its JSON text. A float stays as it is written."""
    try:
        return json.loads(value, parse_float=str) if isinstance(value, bytes) else value
    except ValueError:
        return value


def _key(name: str) -> str:
    clean = safe_name(name)
    return f"{clean}_" if clean in _RESERVED else clean


def _cut(value: object) -> object:
    """A container whose text is too long becomes the beginning of that text. Strings are cut already."""
    if isinstance(value, dict | list):
        text = _compact(value)
        return scrub(text, cap=MAX_FIELD) if len(text) > MAX_FIELD else _finite(value)
    return _finite(value)


def _finite(value: object) -> object:
    """NaN and infinities as strings: JSON can't represent them."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list():
            return [_finite(item) for item in value]
        case _:
            return value


def _cut_traceback(text: str) -> str:
    """Whole lines from the beginning and, for the most part, from the end, which names the exception."""
    if len(text) <= MAX_FIELD:
        return text
    head = text[:_TRACEBACK_HEAD].rpartition("\n")[0]
    tail = text[_TRACEBACK_HEAD + len(CUT) - MAX_FIELD :].partition("\n")[2]
    return scrub(f"{head}\n{CUT}\n{tail}", cap=MAX_FIELD)


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Verbatim(str):
    """Text that is rendered unchanged: structlog's renderers print the `repr` of every value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str.__str__(self)


def _quote(value: object) -> str:
    """One value on a line of text: a plain word unchanged, anything else in double quotes and escaped."""
    text = value if isinstance(value, str) else _compact(value)
    if _BARE.fullmatch(text) and text.isprintable():
        return text
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{printable(quoted)}"'
