"""Makes scrubbed copies of nested values. Never changes the value, never trusts its methods; depth and size are bounded.

The copy holds dicts with text keys, lists, texts, numbers, booleans and None only. A name may also stand in the
structure: a key of a mapping, a field of a record, a `name`/`value` pair, a header tuple, a flag in an argument list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import partial
from itertools import islice
from typing import TypeVar, cast, final

from .limits import CUT, REDACTED, nothing_to_redact
from .names import redact_by_name
from .pipeline import Pipeline
from .safe_call import call_or_none, text_of, type_name
from .sensitivity import Sensitivity, name_sensitivity

_ItemT = TypeVar("_ItemT")
_MAX_DEPTH = 16  # levels of nesting
_MAX_VALUES = 10_000  # values in all
_MAX_CHARACTERS = 1024 * 1024  # of all texts of one value; texts past it are cut
_MAX_INTEGER_BITS = 4096  # printing a larger integer takes quadratic time, and no log needs it
_CYCLE = "<cycle>"
_NAME = re.compile(r"[\w.:-]{1,64}")
_OWN_NAME = re.compile(r"[a-z]{1,20}(?:_[a-z]{1,20}){0,3}")  # names of fields as our events have them
_PAIR_NAMES = ("name", "key", "Name", "Key")
_PAIR_VALUES = ("value", "Value", "val")


@final
class ValueScrubber:
    """Copies one value; `cap` is the most characters of one text. Made anew for each value: its limits count down."""

    def __init__(self, pipeline: Pipeline, *, cap: int) -> None:
        self._pipeline = pipeline
        self._cap = cap
        self._values_left = _MAX_VALUES
        self._characters_left = _MAX_CHARACTERS
        self._ancestors: set[int] = set()  # identities of the containers that hold the current value

    def scrub(self, value: object, depth: int = _MAX_DEPTH) -> object:
        """The scrubbed copy of one value, or the name of its type if the value's own code raises."""
        if type(value) in _BUILTIN_TYPES:
            return self._scrub(value, depth)
        scrubbed = call_or_none(lambda: [self._scrub(value, depth)])  # even `isinstance` may run code of the value
        return scrubbed[0] if scrubbed else f"<{type_name(value)}>"

    def _scrub(self, value: object, depth: int) -> object:
        self._values_left -= 1
        if value is None or value is True or value is False:
            return value
        if self._values_left < 0 or depth < 0:
            return CUT
        match value:
            case str():
                return self._scrub_text(str.__str__(value))
            case int():
                return int.__index__(value) if int.bit_length(value) <= _MAX_INTEGER_BITS else CUT
            case float():
                return float.__float__(value)
            case bytes() | bytearray() | memoryview():
                return self._scrub_text(bytes(value[: self._cap * 4]).decode("utf-8", "backslashreplace"))
            case BaseException():
                from .tracebacks import render_exception  # late: only where an exception is a field

                return self._scrub_text(render_exception(value, self._pipeline))
            case _:
                return self._scrub_container(value, depth)

    def _scrub_container(self, value: object, depth: int) -> object:
        if id(value) in self._ancestors:
            return _CYCLE
        self._ancestors.add(id(value))
        try:
            if isinstance(value, Mapping):
                return self._scrub_mapping(list(islice(value.items(), self._values_left)), depth - 1)
            fields = _record_fields(value)
            if fields is not None:
                return self._scrub_mapping(fields, depth - 1)
            if isinstance(value, (Sequence, Set)) or type_name(value) in _ITERABLES:
                items = islice(cast("Iterable[object]", value), self._values_left)
                return self._scrub_sequence(list(items), depth - 1)
            return self._scrub_text(str.__str__(str(value)))
        finally:
            self._ancestors.discard(id(value))

    def _scrub_mapping(self, fields: list[tuple[object, object]], depth: int) -> dict[str, object]:
        result: dict[str, object] = {}
        named = ""
        for key, value in fields:
            text = self.scrub(key, 0)
            name = text if isinstance(text, str) else str(text)
            copied = self.scrub_named(named if named and name in _PAIR_VALUES else name, value, depth)
            if name in _PAIR_NAMES:
                named = _as_name(copied)
            result[_unique_key(name, result)] = copied
        return result

    def _scrub_sequence(self, items: list[object], depth: int) -> list[object]:
        result: list[object] = []
        name = ""
        for place, item in enumerate(items):
            result.append(copied := self.scrub_named(name, item, depth) if name else self.scrub(item, depth))
            text = _as_name(copied)
            is_header = len(items) == 2 and place == 0
            name = text if is_header or text.startswith("-") else ""
        return scrub_arguments(result, self._pipeline.find_secrets)

    def scrub_named(self, name: str, value: object, depth: int = _MAX_DEPTH) -> object:
        """The copy of a value, or the mark if its name is sensitive. Decided by the copy, as a second round would decide."""
        copied = self.scrub(value, depth)
        sensitivity = name_sensitivity(name)
        redacted: str | None = None
        match copied:
            case None | bool():
                return copied
            case str():
                redacted = redact_by_name(name, copied)
            case int() | float():
                is_counter = name.lower().endswith("s")
                redacted = None if sensitivity is not Sensitivity.CERTAIN or is_counter else REDACTED
            case _:
                redacted = None if sensitivity is not Sensitivity.CERTAIN or _is_redacted(copied) else REDACTED
        self._pipeline.redactions += redacted is not None
        return redacted or copied

    def _scrub_text(self, text: str) -> str:
        if self._characters_left <= 0:
            return CUT if text else text
        scrubbed = self._pipeline.scrub(text, cap=self._cap)
        self._characters_left -= min(len(text), self._cap)
        return scrubbed


def scrub_arguments(
    items: list[_ItemT], find: Callable[[str], tuple[str, list[tuple[str, str]]]]
) -> list[_ItemT | str]:
    """The scrubbed items of a list, without the secrets that `find` sees only when the list is read as a command line.

    Some programs take a password right after a flag of one letter (`mysql -pSECRET`): the program's name tells.
    """
    words = [item for item in items if isinstance(item, str)]
    if len(words) < 2 or not any(word[:1] == "-" for word in words[1:]):
        return [*items]
    secrets = {secret.partition(" ")[0] for secret, _ in find(" ".join(words))[1]}
    return [_without_argument(item, secrets) if place and secrets else item for place, item in enumerate(items)]


def _without_argument(item: _ItemT, secrets: Set[str]) -> _ItemT | str:
    """The item, or what stands before the secret in it. A blank ends a secret in a line, but not in an argument."""
    if not isinstance(item, str):
        return item
    for begin in (0, 2, item.find("=") + 1) if item[:1] == "-" else (0,):
        if item[begin:].partition(" ")[0] in secrets:
            return item[:begin] + REDACTED
    return item


_BUILTIN_TYPES = frozenset({str, int, float, bool, bytes, dict, list, tuple, set, frozenset, type(None)})
"""Types whose methods are Python's own."""
_ITERABLES = frozenset({"deque", "dict_keys", "dict_values", "dict_items", "range", "array"})


def scrub_event(
    pipeline: Pipeline,
    fields: Iterable[tuple[str, object]],
    *,
    program_names: Collection[str],
    whole_paths: Collection[str],
    cap: int,
) -> dict[str, object]:
    """Scrub each field of a log event by itself: the size and the secrets of one change no other.

    Names of fields, and texts in the fields `program_names`, are scrubbed as names of the program. Paths in the fields
    `whole_paths` keep their directories.
    """
    result: dict[str, object] = {}
    named = ""
    for name, value in fields:
        if name in program_names and isinstance(value, str):
            copied: object = pipeline.scrub_name(text_of(value)[:cap])
        elif name in whole_paths and isinstance(value, str):
            copied, _ = pipeline.scrub_secrets(text_of(value)[:cap])
        else:
            owner = named if named and name in _PAIR_VALUES else name
            copied = ValueScrubber(pipeline, cap=cap).scrub_named(owner, value)
        named = _as_name(copied) if name in _PAIR_NAMES else named
        shown = name if _OWN_NAME.fullmatch(name) else pipeline.scrub_name(name)
        result[_unique_key(shown, result)] = copied
    return result


def _record_fields(value: object) -> list[tuple[object, object]] | None:
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
    return [(name, call_or_none(partial(getattr, value, name))) for name in names if isinstance(name, str)]


def _as_name(copied: object) -> str:
    """The copy if it is a text that can be a name, else an empty text."""
    return copied if isinstance(copied, str) and _NAME.fullmatch(copied) else ""


def _unique_key(key: str, taken: Mapping[str, object]) -> str:
    """The key, with a number if scrubbing made two keys equal."""
    number = 1
    while (unique := key if number == 1 else f"{key}#{number}") in taken:
        number += 1
    return unique


def _is_redacted(value: object) -> bool:
    match value:
        case str():
            return nothing_to_redact(value)
        case dict():
            return all(map(_is_redacted, value.values()))
        case list():
            return all(map(_is_redacted, value))
        case _:
            return value is None or isinstance(value, bool)


def scrub_json(
    pipeline: Pipeline, value: object, declared: Collection[str] = (), *, name: str = "", depth: int = _MAX_DEPTH * 4
) -> tuple[object, int]:
    """Run layers 1 to 4 over the texts of a JSON value; returns the result and the number of replacements.

    Without a replacement the result is the same object. Texts that are `declared` stay. The name of a declared field
    counts alone; any other name covers what is nested below it, too. Of bytes only known secrets are looked for: the other
    layers would take any base64 for a secret.
    """
    go_on = partial(scrub_json, pipeline, declared=declared, depth=depth - 1)
    if depth < 0:
        return CUT, 1
    match value:
        case str():
            value = text_of(value)
            if value in declared:
                return value, 0
            scrubbed, count = pipeline.scrub_secrets(value)
            redacted = redact_by_name(name, value) if name else None
            pipeline.redactions += redacted is not None and not count
            return (redacted, max(count, 1)) if redacted is not None else (scrubbed if count else value, count)
        case Mapping():
            is_field = not name or name in declared
            pairs = [
                (
                    (key, 0) if key in declared else pipeline.scrub_secrets(key),
                    go_on(item, name=key if is_field and key in declared else _name_below(name, key)),
                )
                for key, item in [(text_of(key), item) for key, item in value.items()]
            ]
            total = sum(key[1] + item[1] for key, item in pairs)
            return ({key[0]: item[0] for key, item in pairs}, total) if total else (value, 0)
        case list() | tuple():
            items = [go_on(item, name=name) for item in value]
            total = sum(count for _, count in items)
            return ([item for item, _ in items], total) if total else (value, 0)
        case bytes() | bytearray() | memoryview():
            from base64 import b64encode  # late: few errors hold bytes

            return (REDACTED, 1) if pipeline.holds_known(b64encode(value).decode()) else (value, 0)
        case _:
            return value, 0


def _name_below(owner: str, key: str) -> str:
    """The name of a value in a mapping: a name that is always redacted covers what is nested below it."""
    return owner if name_sensitivity(owner) is Sensitivity.CERTAIN and not owner.lower().endswith("tokens") else key
