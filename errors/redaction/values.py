"""Scrubbed copies of nested values. Never changes what it is given, never follows it without end, never trusts it.

The copy holds dicts with text keys, lists, texts, numbers, booleans and None only. Names are seen in the structure
too: keys of mappings and fields of records, `name`/`value` pairs, header tuples, flags in argument lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import partial
from typing import TypeVar, cast, final

from .layers.names import names_value
from .layers.words import Verdict, judge
from .marks import CUT, REDACTED, nothing_left
from .pipeline import Pipeline
from .safe_call import guarded

_DEPTH = 16  # levels of nesting
_NODES = 10_000  # values in all
_CHARACTERS = 1024 * 1024  # of all texts of one value: past it, texts are cut
_INTEGER_BITS = 4096  # an integer beyond it is no fact for a log, and printing it takes quadratic time
_CYCLE = "<cycle>"
_NAME = re.compile(r"[\w.:-]{1,64}")
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
        """The scrubbed copy of one value, or its type's name where the value's own code fails."""
        if type(value) in _OURS:
            return self._copy(value, depth)
        made = guarded(lambda: [self._copy(value, depth)])  # even `isinstance` may run code of the value
        return made[0] if made else f"<{type(value).__name__}>"

    def _copy(self, value: object, depth: int) -> object:
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
            case _:
                return self._container(value, depth)

    def _container(self, value: object, depth: int) -> object:
        if id(value) in self._open:
            return _CYCLE
        self._open.add(id(value))
        try:
            if isinstance(value, Mapping):
                return self._mapping(_head(value.items(), self._nodes), depth - 1)
            fields = _fields(value)
            if fields is not None:
                return self._mapping(fields, depth - 1)
            if isinstance(value, (Sequence, Set)) or type(value).__name__ in _ITERABLES:
                return self._sequence(_head(cast("Iterable[object]", value), self._nodes), depth - 1)
            return self._text(str.__str__(str(value)))
        finally:
            self._open.discard(id(value))

    def _mapping(self, fields: list[tuple[object, object]], depth: int) -> dict[str, object]:
        result: dict[str, object] = {}
        named = ""
        for key, value in fields:
            text = self.copy(key, 0)
            name = text if isinstance(text, str) else str(text)
            copied = self._named(named if named and name in _PAIR_VALUES else name, value, depth)
            if name in _PAIR_NAMES:
                named = _name(copied)
            result[_free(name, result)] = copied
        return result

    def _sequence(self, items: list[object], depth: int) -> list[object]:
        result: list[object] = []
        name = ""
        for place, item in enumerate(items):
            result.append(copied := self._named(name, item, depth) if name else self.copy(item, depth))
            text = _name(copied)
            is_header = len(items) == 2 and place == 0
            name = text if is_header or text.startswith("-") else ""
        return result

    def _named(self, name: str, value: object, depth: int) -> object:
        """A value under its name: the mark where the name tells. Judged by its copy, as a second round will."""
        copied = self.copy(value, depth)
        verdict = judge(name)
        match copied:
            case None | bool():
                return copied
            case str():
                return names_value(name, copied) or copied
            case int() | float():
                is_counter = name.lower().endswith("s")
                return copied if verdict is not Verdict.SECRET or is_counter else REDACTED
            case _:
                return copied if verdict is not Verdict.SECRET or _holds_marks_only(copied) else REDACTED

    def _text(self, text: str) -> str:
        if self._characters <= 0:
            return CUT if text else text
        scrubbed = self._pipeline.scrub(text, cap=self._cap)
        self._characters -= min(len(text), self._cap)
        return scrubbed


_OURS = frozenset({str, int, float, bool, bytes, dict, list, tuple, set, frozenset, type(None)})
"""Types whose code is Python's own."""
_ITERABLES = frozenset({"deque", "dict_keys", "dict_values", "dict_items", "range", "array"})


def _fields(value: object) -> list[tuple[object, object]] | None:
    """The fields of a record (dataclass, msgspec Struct, attrs, named tuple); None for anything else."""
    kind = type(value)
    names: object = (
        getattr(kind, "__struct_fields__", None)
        or getattr(kind, "__dataclass_fields__", None)
        or [getattr(field, "name", "") for field in getattr(kind, "__attrs_attrs__", None) or ()]
        or (getattr(kind, "_fields", None) if isinstance(value, tuple) else None)
    )
    if not names or isinstance(value, type) or not isinstance(names, Iterable):
        return None
    return [(name, guarded(partial(getattr, value, name))) for name in names if isinstance(name, str)]


def _head(items: Iterable[ResultT], most: int) -> list[ResultT]:
    result: list[ResultT] = []
    for item in items:
        if len(result) >= most:
            break
        result.append(item)
    return result


def _name(copied: object) -> str:
    """The text of a copy where it can be a name, else nothing. Of the copy, so that a second round sees the same."""
    return copied if isinstance(copied, str) and _NAME.fullmatch(copied) else ""


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
