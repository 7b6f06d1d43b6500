"""Renders an event as one scrubbed line. Only the writer thread imports and runs it, since it loads the scrubber.

In the form for people, a traceback follows the line on indented lines of its own, with the source text of the program.
Each field is scrubbed by itself: its value, cut to its limit, and once more as the line shows it. So no value can hide or
change another field. Data of a caller can't end a line, colour it or look like a field: in every form values are quoted,
and what is not printable is escaped. The timestamp, the level and the event are the program's own and stay as they are.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Final, final

from ...errors.printable import printable, printable_json
from ...errors.redaction import load_environment, scrub, scrub_event, scrub_exception
from ...errors.redaction.limits import CUT, REDACTED
from .line import encode_line, safe_name, standard_fields
from .logger import ConfiguredPath, LogEvent
from .sink import Form

MAX_FIELD: Final = 8 * 1024
"""Characters of one field, nested values included. A longer one is scrubbed, cut and scrubbed again."""

_TRACEBACK_HEAD: Final = 2 * 1024
"""How many characters of the beginning of a too long traceback are kept."""

_FIRST: Final = ("method", "id")

_RESERVED: Final = frozenset({"timestamp", "level", "event", "stack", "exception", "exc_info"})
"""Names of the line's own, and of what structlog adds. A field of such a name gets an underscore."""

_BOLD, _DIM, _CYAN, _MAGENTA = 1, 2, 36, 35
_LEVEL_COLORS: Final = {"debug": 32, "info": 32, "warn": 33, "error": 31}
"""Codes of SGR (ECMA-48)."""

_PROGRAM_NAMES: Final = ("method", "oldest_method", "logger")
"""Fields whose value names something of the program: a registered secret of plain words does not hide it."""

_BARE: Final = re.compile(r'[^\s="\\]+')

_INSIDE_QUOTES: Final = re.compile(r'(?:[^"\\]|\\.)*+')


@final
class Renderer:
    """Renders for one sink. Its constructor loads the scrubber's environment: milliseconds."""

    def __init__(self, form: Form, *, color: bool, environ: Mapping[str, str]) -> None:
        load_environment(environ)
        self._form: Form = form
        self._color = color

    def line(self, event: LogEvent) -> bytes:
        """The line with its end. Raises what a value's own code raises; `line.fallback_line` serves then."""
        standard, fields = standard_fields(event), _fields(event.fields, source=self._form == "console")
        traceback = ""
        if self._form == "console" and isinstance(event.fields.get("exc"), BaseException):
            traceback = _indented(str(fields.pop("exc")))
        if self._form == "json":
            text = printable_json(json.dumps({**standard, **{key: _checked_json(fields[key]) for key in fields}}))
            return encode_line(text, self._form, event)
        standard = {name: _quote(value) for name, value in standard.items()}
        shown = {name: _checked_text(value) for name, value in fields.items()}
        if self._form == "console":
            text = _console_line(standard, shown, color=self._color) + traceback
        else:
            text = " ".join(f"{name}={value}" for name, value in {**standard, **shown}.items())
        return encode_line(text, self._form, event)


def _checked_text(value: object) -> str:
    """The value as a line of text shows it, scrubbed once more in that form."""
    shown = _quote(value)
    if shown == value or value is None or isinstance(value, bool | int | float):
        return shown
    if not shown.startswith('"'):  # a container without anything to quote
        return shown if scrub(shown) == shown else REDACTED
    if shown[1:-1] == value:
        return shown
    inside = scrub(shown[1:-1])
    if inside == shown[1:-1]:
        return shown
    # Where a quote or half of an escape was removed too, nothing tells where the value would end.
    return f'"{printable(inside)}"' if _INSIDE_QUOTES.fullmatch(inside) else REDACTED


def _checked_json(value: object) -> object:
    """The value, scrubbed once more as JSON shows it; the mark if what is left is no JSON of the same type."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = json.dumps(value)
    if isinstance(value, str) and text[1:-1] == value:
        return value
    safe = scrub(text)
    if safe == text:
        return value
    try:
        parsed: object = json.loads(safe)
    except ValueError:
        return REDACTED
    return parsed if type(parsed) is type(value) else REDACTED


def _console_line(standard: Mapping[str, str], fields: Mapping[str, str], *, color: bool) -> str:
    """A line for people: time, level and event in columns, then the fields."""

    def paint(text: str, *codes: int) -> str:
        return "".join(f"\x1b[{code}m" for code in codes) + f"{text}\x1b[0m" if color else text

    when, level, event = standard.values()
    head = paint(when, _DIM), f"[{paint(f'{level:<9}', _LEVEL_COLORS[level], _BOLD)}]", paint(f"{event:<30}", _BOLD)
    return " ".join([*head, *(f"{paint(name, _CYAN)}={paint(value, _MAGENTA)}" for name, value in fields.items())])


def _indented(text: str) -> str:
    """Lines below an event. None can be taken for an event: those begin with their time."""
    return "".join(f"\n    {printable(line)}" for line in scrub(text).split("\n"))


def _fields(fields: Mapping[str, object], *, source: bool) -> dict[str, object]:
    """The fields scrubbed and cut, under names that can't be taken for the line's own; `method` and `id` first.

    `source` says whether tracebacks come with their lines of source text.
    """
    exc = fields.get("exc")
    has_traceback = exc is None or isinstance(exc, BaseException)
    rest = {
        name: _id(value) if name == "id" else value
        for name, value in fields.items()
        if name != "exc" or not has_traceback
    }
    whole_paths = [name for name, value in rest.items() if type(value) is ConfiguredPath]
    seen = scrub_event(rest, program_names=_PROGRAM_NAMES, whole_paths=whole_paths, cap=MAX_FIELD)
    result: dict[str, object] = {}
    for name in sorted(seen, key=lambda name: name not in _FIRST):  # stable: the others keep their order
        result[_key(name, result)] = _cut(seen[name])
    if isinstance(exc, BaseException):
        result["exc"] = _cut_traceback(scrub_exception(exc, source=source).rstrip())
    return result


def _id(value: object) -> object:
    """A request's id, which may come as the bytes of its JSON text. A float stays as it is written."""
    try:
        return json.loads(value, parse_float=str) if isinstance(value, bytes) else value
    except ValueError:
        return value


def _key(name: str, taken: Mapping[str, object]) -> str:
    """The name as the line shows it: none of the line's own names, and no field's that comes before."""
    clean = safe_name(name)
    while clean in _RESERVED or clean in taken:
        clean += "_"
    return clean


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


def _quote(value: object) -> str:
    """One value on a line of text: a plain word unchanged, anything else in double quotes and escaped."""
    text = value if isinstance(value, str) else _compact(value)
    if _BARE.fullmatch(text) and text.isprintable():
        return text
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{printable(quoted)}"'
