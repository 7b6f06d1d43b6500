"""Renders an event as one scrubbed line. Only the writer thread imports and runs it, since it loads structlog.

In the form for people, a traceback follows the line on indented lines of its own, with the source text of the program.
Each field is scrubbed by itself: its value, cut to its limit, and once more as the line shows it. So no value can hide or
change another field. Data of a caller can't end a line, colour it or look like a field: in every form values are quoted,
and what is not printable is escaped. The timestamp, the level and the event are the program's own and stay as they are.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
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
"""Names that the line or structlog's renderers use. A field of such a name gets an underscore."""

_PROGRAM_NAMES: Final = ("method", "oldest_method", "logger")
"""Fields whose value names something of the program: a registered secret of plain words does not hide it."""

_BARE: Final = re.compile(r'[^\s="\\]+')

_INSIDE_QUOTES: Final = re.compile(r'(?:[^"\\]|\\.)*+')


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
        standard, fields = standard_fields(event), _fields(event.fields, source=self._form == "console")
        traceback = ""
        if self._form == "console" and isinstance(event.fields.get("exc"), BaseException):
            traceback = _indented(str(fields.pop("exc")))
        if self._form == "json":
            text = printable_json(
                self._plain({**standard, **{key: _checked_json(value) for key, value in fields.items()}})
            )
        else:
            shown = {key: _Verbatim(_quote(value)) for key, value in standard.items()}
            shown |= {key: _Verbatim(_checked_text(value)) for key, value in fields.items()}
            text = (self._colored or self._plain)(shown) + traceback
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
