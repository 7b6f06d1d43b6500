"""Turns YAML into the values of JSON, by the core schema of YAML 1.2: `on` and `no` are strings, so are dates, and all keys.

Goes by PyYAML's events, so nesting takes no stack. Aliases share what they refer to; what they would come to when written out is
bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, final

from .nodes import DocumentError, Path, quoted

_EXPANDED_MIN: Final = 200_000
_EXPANDED_TIMES: Final = 10
"""How many values aliases may come to: so many, or so many times those that are written."""

_TAG: Final = "tag:yaml.org,2002:"
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NUMBER: Final = re.compile(
    r"(?P<int>[-+]?[0-9]+)|0o(?P<oct>[0-7]+)|0x(?P<hex>[0-9a-fA-F]+)|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
)
_NUMBER_STARTS: Final = frozenset("+-.0123456789")
_MAX_DIGITS: Final = 300
"""A longer number is a string: Python refuses to read those of thousands of digits, and floats end here."""

_MERGE: Final = "<<"


def parse_yaml(text: bytes, note: Callable[[Path, str], None]) -> Any:  # Any: JSON
    """The one document of a YAML text. `note` is told of keys that occur twice.

    Raises `DocumentError` for what is no YAML, and for what JSON can't hold.
    """
    try:
        import yaml  # type: ignore[import-not-found,import-untyped,unused-ignore] # late: an extra, and JSON needs none
    except ImportError as exc:
        raise DocumentError("this is no JSON, and YAML needs the extra: pip install 'discreet[openapi]'") from exc

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(note)
    kinds: dict[type, Callable[[Any], None]] = {
        yaml.ScalarEvent: builder.scalar,
        yaml.MappingStartEvent: builder.start_mapping,
        yaml.SequenceStartEvent: builder.start_sequence,
        yaml.MappingEndEvent: builder.end,
        yaml.SequenceEndEvent: builder.end,
        yaml.AliasEvent: builder.alias,
        yaml.DocumentStartEvent: builder.start_document,
    }
    try:
        for event in yaml.parse(text, Loader=loader):
            read = kinds.get(type(event))
            if read is not None:
                read(event)
    except yaml.MarkedYAMLError as exc:
        line = f"line {exc.problem_mark.line + 1}: " if exc.problem_mark else ""
        raise DocumentError(f"no YAML: {line}{quoted(exc.problem or exc.context)}") from exc
    except yaml.YAMLError as exc:  # characters that YAML does not allow
        raise DocumentError("no YAML: it holds a character that can't stand in one, or is no UTF-8") from exc
    except (UnicodeError, RecursionError, ValueError) as exc:
        raise DocumentError("no YAML: it can't be decoded") from exc
    return builder.root


@final
class _Open:
    """A mapping or a sequence that is being read. `size` counts the values in it."""

    __slots__ = ("anchor", "key", "merged", "size", "value")

    def __init__(self, value: dict[str, Any] | list[Any], anchor: str | None) -> None:
        self.value = value
        self.anchor = anchor
        self.key: str | None = None
        self.merged: list[Any] = []
        self.size = 1


@final
class _Builder:
    def __init__(self, note: Callable[[Path, str], None]) -> None:
        self.root: Any = None
        self._note = note
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._documents = 0
        self._written = 0
        self._expanded = 0
        self._keys: dict[str, str] = {}  # the same key many times is one string

    def start_document(self, event: Any) -> None:  # Any: PyYAML has no types
        self._documents += 1
        if self._documents > 1:
            raise DocumentError(f"no YAML of one document: line {event.start_mark.line + 1} begins another")

    def scalar(self, event: Any) -> None:
        self._written += 1
        parent = self._open[-1] if self._open else None
        if parent is not None and parent.key is None and type(parent.value) is dict:
            if event.anchor is not None:
                self._anchors[event.anchor] = event.value, 1
            self._key(parent, event.value, event)
            return
        tag = event.tag
        value = _plain(event.value) if tag is None and event.implicit[0] else _tagged(event.value, tag)
        if event.anchor is not None:
            self._anchors[event.anchor] = value, 1
        self._add(value, 1)

    def alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise DocumentError(
                f"line {event.start_mark.line + 1}: *{quoted(event.anchor)} refers to nothing before it"
            )
        value, size = self._anchors[event.anchor]
        self._grow(size)
        parent = self._open[-1] if self._open else None
        if parent is not None and parent.key is None and type(parent.value) is dict:
            if type(value) in (dict, list):
                raise DocumentError(f"line {event.start_mark.line + 1}: a key must be a scalar")
            self._key(parent, str(value), event)
            return
        self._add(value, size)

    def start_mapping(self, event: Any) -> None:
        self._start({}, event)

    def start_sequence(self, event: Any) -> None:
        self._start([], event)

    def _start(self, value: dict[str, Any] | list[Any], event: Any) -> None:
        self._written += 1
        parent = self._open[-1] if self._open else None
        if parent is not None and parent.key is None and type(parent.value) is dict:
            raise DocumentError(f"line {event.start_mark.line + 1}: a key must be a scalar")
        if event.anchor is not None:
            self._anchors.pop(event.anchor, None)  # until its end it refers to nothing: a value can't hold itself
        self._open.append(_Open(value, event.anchor))

    def end(self, _: Any) -> None:
        done = self._open.pop()
        for merged in done.merged:
            self._merge(done, merged)
        if done.anchor is not None:
            self._anchors[done.anchor] = done.value, done.size
        self._add(done.value, done.size)

    def _key(self, parent: _Open, key: str, event: Any) -> None:
        key = self._keys.setdefault(key, key)
        if key in parent.value:
            self._note(
                self._path(key),
                f"the key occurs twice, the second time in line {event.start_mark.line + 1}; that one counts",
            )
        parent.key = key

    def _add(self, value: Any, size: int) -> None:
        if not self._open:
            self.root = value
            return
        parent = self._open[-1]
        parent.size += size
        if type(parent.value) is list:
            parent.value.append(value)
        elif parent.key == _MERGE and (type(value) is dict or type(value) is list):
            parent.key = None
            parent.merged += value if type(value) is list else [value]
        else:
            assert isinstance(parent.value, dict) and parent.key is not None, "a key comes before its value"
            parent.value[parent.key] = value
            parent.key = None

    def _merge(self, target: _Open, source: Any) -> None:
        """`<<` of YAML 1.1: the members of another mapping, where there is none of their name."""
        assert isinstance(target.value, dict), "only a mapping has keys"
        if type(source) is not dict:
            raise DocumentError(f"{_MERGE} must be followed by a mapping, or by a list of mappings")
        self._grow(len(source))
        for key, value in source.items():
            target.value.setdefault(key, value)

    def _grow(self, size: int) -> None:
        self._expanded += size
        if self._expanded > max(_EXPANDED_MIN, _EXPANDED_TIMES * self._written):
            raise DocumentError("the aliases of this YAML come to too much when they are written out")

    def _path(self, key: str) -> Path:
        path: Path = None
        for each in self._open[:-1]:
            path = path, str(len(each.value)) if each.key is None else each.key
        return path, key


def _plain(text: str) -> Any:  # Any: JSON
    """The value of a plain scalar. One for which JSON has no number is a string."""
    if text[:1] in _NUMBER_STARTS:
        found = _NUMBER.fullmatch(text) if len(text) <= _MAX_DIGITS else None
        if found is None:
            return text
        if found["int"]:
            return int(text)
        if found["oct"]:
            return int(found["oct"], 8)
        if found["hex"]:
            return int(found["hex"], 16)
        number = float(text)
        return text if number in (float("inf"), float("-inf")) else number
    if text in _NULLS:
        return None
    return _BOOLEANS.get(text, text)


def _tagged(text: str, tag: str | None) -> Any:  # Any: JSON
    """The value of a scalar in quotes, or of one with a tag. A tag that JSON has no type for is ignored."""
    if tag is not None and tag.removeprefix(_TAG) in ("null", "bool", "int", "float"):
        return _plain(text)
    return text
