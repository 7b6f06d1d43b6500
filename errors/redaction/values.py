"""Scrubbed copies of nested values. Never changes what it is given, never follows it without end, never trusts it.

The copy holds dicts with text keys, lists, texts, numbers, booleans and None only. Names are seen in the structure
too: keys of mappings and fields of records, `name`/`value` pairs, header tuples, flags in argument lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import TypeVar, final

from .marks import CUT, REDACTED, nothing_left
from .names import names_value
from .pipeline import Pipeline
from .words import Verdict, judge

_DEPTH = 16  # levels of nesting
_NODES = 10_000  # values in all
_CHARACTERS = 1024 * 1024  # of all texts of one value: past it, texts are cut
_INTEGER_BITS = 4096  # an integer beyond it is no fact for a log, and printing it takes quadratic time
_CYCLE = "<cycle>"
_PAIR_NAMES = ("name", "key", "Name", "Key")
_PAIR_VALUES = ("value", "Value", "val")

ResultT = TypeVar("ResultT")


@final
class Copier:
    """One copy. `cap` is the most characters of one text."""

    def __init__(self, pipeline: Pipeline, *, cap: int) -> None:
        self._pipeline = pipeline
        self._cap = cap
        self._nodes = _NODES
        self._characters = _CHARACTERS
        self._open: set[int] = set()  # identities of the containers around the value at hand

    def copy(self, value: object, depth: int = _DEPTH) -> object:
        self._nodes -= 1
        if value is None or value is True or value is False:
            return value
        if self._nodes < 0 or depth < 0:
            return CUT
        match value:
            case str():
                return self._text(str.__str__(value))
            case int():
                return int.__index__(value) if int.bit_length(value) <= _INTEGER_BITS else CUT
            case float():
                return float.__float__(value)
            case bytes() | bytearray() | memoryview():
                return self._text(bytes(value[: self._cap * 4]).decode("utf-8", "backslashreplace"))
            case BaseException():
                from .tracebacks import render  # late: only where an exception is a field

                return self._text(render(value, self._pipeline))
        return self._container(value, depth)

    def _container(self, value: object, depth: int) -> object:
        if id(value) in self._open:
            return _CYCLE
        self._open.add(id(value))
        try:
            fields = _fields(value)
            if fields is not None:
                return self._mapping(fields, depth - 1)
            if isinstance(value, (Sequence, Set)) or type(value).__name__ in _ITERABLES:
                items = _guarded(lambda: _head(value, self._nodes))  # type: ignore[arg-type]  # checked above
                return _type_name(value) if items is None else self._sequence(items, depth - 1)
            shown = _guarded(lambda: str(value))
            return _type_name(value) if shown is None else self._text(str.__str__(shown))
        finally:
            self._open.discard(id(value))

    def _mapping(self, fields: list[tuple[object, object]], depth: int) -> dict[str, object]:
        pairs = dict((key, value) for key, value in fields if isinstance(key, str))
        named = next((pairs[name] for name in _PAIR_NAMES if isinstance(pairs.get(name), str)), None)
        result: dict[str, object] = {}
        for key, value in fields:
            text = self.copy(key, 0)
            text = text if isinstance(text, str) else str(text)
            name = str(named) if named is not None and key in _PAIR_VALUES else text
            copied = self._named(name, value, depth)
            result[_free(text, result)] = copied
        return result

    def _sequence(self, items: list[object], depth: int) -> list[object]:
        result: list[object] = []
        name = ""
        for place, item in enumerate(items):
            result.append(self._named(name, item, depth) if name else self.copy(item, depth))
            text = _plain_text(item)
            is_flag = text.startswith("-") and "=" not in text and " " not in text
            is_header = len(items) == 2 and place == 0 and 0 < len(text) <= 64 and " " not in text
            name = text if is_flag or is_header else ""
        return result

    def _named(self, name: str, value: object, depth: int) -> object:
        """A value under its name: the mark where the name tells."""
        verdict = judge(name)
        if verdict is Verdict.PLAIN or value is None or isinstance(value, bool):
            return self.copy(value, depth)
        text = _plain_text(value)
        if text or isinstance(value, (str, bytes)):
            return names_value(name, text) or self.copy(value, depth)
        if verdict is Verdict.SUSPECT or (isinstance(value, (int, float)) and name.lower().endswith("s")):
            return self.copy(value, depth)
        copied = self.copy(value, depth)
        return copied if copied in ([], {}, CUT, _CYCLE) or _holds_marks_only(copied) else REDACTED

    def _text(self, text: str) -> str:
        if self._characters <= 0:
            return CUT if text else text
        scrubbed = self._pipeline.scrub(text, cap=self._cap)
        self._characters -= min(len(text), self._cap)
        return scrubbed


_ITERABLES = frozenset({"deque", "dict_keys", "dict_values", "dict_items", "range", "array"})


def _fields(value: object) -> list[tuple[object, object]] | None:
    """The pairs of a mapping or a record (dataclass, msgspec Struct, attrs, named tuple); None for anything else."""
    if isinstance(value, Mapping):
        return _guarded(lambda: _head(value.items(), _NODES)) or []
    kind = type(value)
    names: object = (
        getattr(kind, "__struct_fields__", None)
        or getattr(kind, "__dataclass_fields__", None)
        or [getattr(field, "name", "") for field in getattr(kind, "__attrs_attrs__", None) or ()]
        or (getattr(kind, "_fields", None) if isinstance(value, tuple) else None)
    )
    if not names or isinstance(value, type) or not isinstance(names, Iterable):
        return None
    return [(name, _guarded(lambda name=name: getattr(value, name))) for name in names if isinstance(name, str)]


def _head(items: Iterable[ResultT], most: int) -> list[ResultT]:
    result: list[ResultT] = []
    for item in items:
        if len(result) >= most:
            break
        result.append(item)
    return result


def _guarded(foreign: Callable[[], ResultT]) -> ResultT | None:
    """What foreign code returns, None when it fails: `__repr__`, `__iter__` and properties may raise anything."""
    try:
        return foreign()
    except Exception:  # any class at all: this code is not ours, and a log line must not fail for it
        return None


def _type_name(value: object) -> str:
    return f"<{type(value).__name__}>"


def _plain_text(value: object) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _free(key: str, taken: Mapping[str, object]) -> str:
    """The key, numbered where scrubbing made two keys alike."""
    number = 1
    while (free := key if number == 1 else f"{key}#{number}") in taken:
        number += 1
    return free


def _holds_marks_only(value: object) -> bool:
    match value:
        case str():
            return nothing_left(value)
        case dict():
            return all(map(_holds_marks_only, value.values()))
        case list():
            return all(map(_holds_marks_only, value))
        case _:
            return value is None or isinstance(value, bool)


def scrub_details(pipeline: Pipeline, value: object, name: str = "", depth: int = _DEPTH * 4) -> tuple[object, int]:
    """Layers 1 to 4 over the texts of a JSON value. Returns the value itself, and 0, where there is nothing to hide."""
    if depth < 0:
        return CUT, 1
    match value:
        case str():
            clean, hits = pipeline.scrub_secrets(value)
            hidden = names_value(name, value) if name else None
            return (hidden, max(hits, 1)) if hidden is not None else (clean if hits else value, hits)
        case Mapping():
            pairs = [
                (pipeline.scrub_secrets(str(key)), scrub_details(pipeline, item, str(key), depth - 1))
                for key, item in value.items()
            ]
            total = sum(key[1] + item[1] for key, item in pairs)
            return ({key[0]: item[0] for key, item in pairs}, total) if total else (value, 0)
        case list() | tuple():
            items = [scrub_details(pipeline, item, name, depth - 1) for item in value]
            total = sum(hits for _, hits in items)
            return ([item for item, _ in items], total) if total else (value, 0)
        case _:
            return value, 0
