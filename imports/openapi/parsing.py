"""Turns the bytes of a document into values: JSON, or else YAML. Reads and fetches nothing.

YAML is read by the core schema of YAML 1.2: `on` and `no` are strings, so are dates, and all keys. It goes by PyYAML's events, so
nesting takes no stack. Aliases share what they refer to; what they would come to when written out is bounded.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias, final

import msgspec

from ...errors.printable import cut, printable

MAX_DEPTH: Final = 200
"""How deep objects and arrays may be nested. Documents of thousands of operations have about 40 levels."""

_SHOWN_CHARACTERS: Final = 80
"""How much of a name of the document stands in a message."""

Path: TypeAlias = "tuple[Path, str] | None"
"""The way to a value from the root of its document: the way to what holds it, and its name or index. None is the root."""

Noted: TypeAlias = Callable[[Path, str], None]
"""Is told what was read otherwise than it stands there: where, and why."""


@final
class DocumentError(Exception):
    """The document can't be read at all. The message is one line; it begins with the pointer, if there is a place to name."""

    def __init__(self, reason: str, pointer: str = "") -> None:
        super().__init__(f"{pointer}: {reason}" if pointer else reason)
        self.reason = reason


def quoted(name: object) -> str:
    """Return a name of the document for a message: on one line, and not too long."""
    return printable(cut(str(name), _SHOWN_CHARACTERS))


_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def parse(text: bytes, note: Noted) -> Any:  # Any: JSON
    """Return the value of a text. `note` is told of keys that occur twice. Raises `DocumentError`."""
    text = _utf8(text)
    start = text.lstrip()[:1]
    if not start:
        raise DocumentError("the document is empty")
    tree = _json(text) if start in b"{[" else _yaml(text, note)
    _check(tree)
    return tree


def _utf8(text: bytes) -> bytes:
    for mark, encoding in _MARKS.items():
        if text.startswith(mark):
            try:
                return text.decode(encoding).encode()
            except UnicodeError as exc:
                raise DocumentError(f"the document is no text in {encoding}") from exc
    return text


def _json(text: bytes) -> Any:  # Any: JSON
    try:
        return msgspec.json.decode(text)
    except RecursionError as exc:
        raise DocumentError(_TOO_DEEP) from exc
    except UnicodeDecodeError as exc:
        raise DocumentError("no JSON: the document is no UTF-8") from exc
    except msgspec.DecodeError as exc:  # its text quotes nothing of the document
        raise DocumentError(f"no JSON: {exc}") from exc


_INTS: Final = range(-(2**63), 2**64)
"""The whole numbers that every part of an import can carry. Others become floats."""
_TOO_DEEP: Final = f"nested deeper than {MAX_DEPTH} levels"


def _check(tree: Any) -> None:
    """Refuse what is nested too deeply, and make floats of whole numbers that are too large."""
    level: list[Any] = [[tree]]
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for container in level:
            for place, value in container.items() if type(container) is dict else enumerate(container):
                if type(value) is dict or type(value) is list:
                    below.append(value)
                elif type(value) is int and value not in _INTS:
                    container[place] = _as_float(value)
        if not below:
            return
        level = below
    raise DocumentError(_TOO_DEEP)


def _as_float(number: int) -> float | str:
    try:
        return float(number)
    except OverflowError:
        return str(number)


# -- YAML ------------------------------------------------------------------------------------------------------

_EXPANDED_MIN: Final = 200_000
_EXPANDED_TIMES: Final = 10
"""How many values aliases may come to: so many, or so many times those that are written."""

_TYPED: Final = frozenset(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))
_CONSTANTS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER: Final = re.compile(
    r"(?P<int>[-+]?[0-9]+)|0o(?P<oct>[0-7]+)|0x(?P<hex>[0-9a-fA-F]+)|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
)
_NUMBER_STARTS: Final = frozenset("+-.0123456789")
_MAX_DIGITS: Final = 300
"""A longer number is a string: Python refuses to read those of thousands of digits, and floats end here."""

_MERGE: Final = "<<"


def _yaml(text: bytes, note: Noted) -> Any:  # Any: JSON
    try:
        import yaml  # type: ignore[import-not-found,import-untyped,unused-ignore] # late: an extra, and JSON needs none
    except ImportError as exc:
        raise DocumentError("this is no JSON, and YAML needs the extra: pip install 'discreet[openapi]'") from exc

    builder = _Builder(note)
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            match event:
                case yaml.DocumentStartEvent() if builder.root is not None:
                    raise DocumentError(f"no YAML of one document: line {_line(event)} begins another")
                case yaml.ScalarEvent() | yaml.AliasEvent():
                    builder.add(event)
                case yaml.CollectionStartEvent():
                    builder.begin({} if isinstance(event, yaml.MappingStartEvent) else [], event.anchor)
                case yaml.CollectionEndEvent():
                    builder.end(event)
                case _:  # the begin and the end of the stream
                    pass
    except yaml.MarkedYAMLError as exc:
        line = f"line {exc.problem_mark.line + 1}: " if exc.problem_mark else ""
        raise DocumentError(f"no YAML: {line}{quoted(exc.problem or exc.context)}") from exc
    except (yaml.YAMLError, UnicodeError, RecursionError, ValueError) as exc:  # characters that YAML does not allow
        raise DocumentError("no YAML: it holds a character that can't stand in one, or is no UTF-8") from exc
    return builder.root


@final
class _Open:
    """A mapping or a sequence that is being read. `key` is that of the next value, `size` counts the values in it."""

    __slots__ = ("anchor", "key", "merged", "size", "value")

    def __init__(self, value: Any, anchor: str | None = None) -> None:
        self.value = value
        self.anchor = anchor
        self.key: str | None = None
        self.merged: list[Any] = []
        self.size = 1


@final
class _Builder:
    """Builds the value of the one document of a text, event by event (Any: PyYAML has no types)."""

    def __init__(self, note: Noted) -> None:
        self._note = note
        self._open = [_Open([])]
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._written = self._expanded = 0

    @property
    def root(self) -> Any:
        return self._open[0].value[0] if self._open[0].value else None

    def begin(self, value: dict[str, Any] | list[Any], anchor: str | None) -> None:
        self._written += 1
        self._anchors.pop(anchor or "", None)  # until its end it refers to nothing: a value can't hold itself
        self._open.append(_Open(value, anchor))

    def end(self, event: Any) -> None:
        done = self._open.pop()
        for (
            source
        ) in done.merged:  # `<<` of YAML 1.1: the members of another mapping, where there is none of their name
            if type(source) is not dict:
                raise DocumentError(f"{_MERGE} must be followed by a mapping, or by a list of mappings")
            self._grow(len(source))
            done.value.update((key, value) for key, value in source.items() if key not in done.value)
        self._add(done.value, done.size, done.anchor, event)

    def add(self, event: Any) -> None:
        """Add a scalar, or what an alias stands for."""
        if not hasattr(event, "value"):
            if event.anchor not in self._anchors:
                raise DocumentError(f"line {_line(event)}: *{quoted(event.anchor)} refers to nothing before it")
            value, size = self._anchors[event.anchor]
            self._grow(size)
            self._add(value, size, None, event)
            return
        self._written += 1
        is_plain = (event.tag is None and event.implicit[0]) or event.tag in _TYPED
        self._add(_plain(event.value) if is_plain and not self._wants_key else event.value, 1, event.anchor, event)

    @property
    def _wants_key(self) -> bool:
        return self._open[-1].key is None and type(self._open[-1].value) is dict

    def _add(self, value: Any, size: int, anchor: str | None, event: Any) -> None:
        if anchor is not None:
            self._anchors[anchor] = value, size
        parent = self._open[-1]
        is_container = isinstance(value, dict | list)
        if self._wants_key:
            if is_container:
                raise DocumentError(f"line {_line(event)}: a key must be a scalar")
            parent.key = str(value)
            if parent.key in parent.value:
                self._note_repeated(parent.key, _line(event))
            return
        parent.size += size
        if type(parent.value) is list:
            parent.value.append(value)
        elif parent.key == _MERGE and is_container:
            parent.merged += value if type(value) is list else [value]
        else:
            parent.value[parent.key] = value
        parent.key = None

    def _note_repeated(self, key: str, line: int) -> None:
        path: Path = None
        for each in self._open[1:-1]:
            path = path, str(len(each.value)) if each.key is None else each.key
        self._note((path, key), f"the key occurs twice, the second time in line {line}; that one counts")

    def _grow(self, size: int) -> None:
        self._expanded += size
        if self._expanded > max(_EXPANDED_MIN, _EXPANDED_TIMES * self._written):
            raise DocumentError("the aliases of this YAML come to too much when they are written out")


def _line(event: Any) -> int:
    line: int = event.start_mark.line + 1
    return line


def _plain(text: str) -> Any:  # Any: JSON
    """The value of a plain scalar. One for which JSON has no number is a string."""
    if text[:1] not in _NUMBER_STARTS:
        return _CONSTANTS.get(text, text)
    found = _NUMBER.fullmatch(text) if len(text) <= _MAX_DIGITS else None
    if found is None:
        return text
    if found["int"]:
        return int(text)
    if digits := found["oct"] or found["hex"]:
        return int(digits, 8 if found["oct"] else 16)
    number = float(text)
    return text if number in (float("inf"), float("-inf")) else number
