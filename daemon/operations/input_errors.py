"""Finds the first value in a JSON text that does not fit a type. Never repeats keys or values of the caller.

The search goes down one level at a time: of the values that an object or array holds, it enters the first that msgspec
refuses. The result is made of declared names and type phrases alone. msgspec's own messages quote keys and values and
are never read. The one exception is a plain word that the caller misspelt (`_is_plain`).
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Raw
from msgspec import inspect as types

from ...errors.decoders import DECODE_ERRORS, SURE_LEVELS, build_decoder, decoder_for, type_info
from ...errors.failures import InvalidParams, JsonScalar
from .json_types import without_metadata
from .type_phrases import (
    ObjectLike,
    TupleLike,
    accepted_values,
    describe_type,
    json_kinds,
    json_text,
    object_members,
    to_annotation,
    tuple_items,
)

_WORK: Final = 64 * 1024 * 1024
"""The work budget of one search, in bytes: about half a second for the worst text of 10 MiB. A level is read twice, and
each value in it (one per comma) costs `_WORK_PER_VALUE` more. When the budget is used up, the level reached is named."""
_WORK_PER_VALUE: Final = 32

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")
_KINDS: Final = {  # by a text's first byte
    **dict.fromkeys(b'"', "string"),
    **dict.fromkeys(b"{", "object"),
    **dict.fromkeys(b"[", "array"),
    **dict.fromkeys(b"n", "null"),
    **dict.fromkeys(b"tf", "boolean"),
    **dict.fromkeys(b"-0123456789", "number"),
}
_UNREADABLE: Final = {
    "string": "string of Unicode text",
    "number": "number in range",
    "array": f"array of at most {SURE_LEVELS} levels",
    "object": f"object of at most {SURE_LEVELS} levels",
}


class _Mismatch(msgspec.Struct, frozen=True):
    """A value that does not fit its type, and the declared path to it."""

    type: types.Type
    text: bytes
    path: str

    def member(self, name: str, node: types.Type, text: Raw) -> _Mismatch:
        return _Mismatch(node, bytes(text), _member_path(self.path, name))

    def item(self, index: int, node: types.Type, text: Raw) -> _Mismatch:
        return _Mismatch(node, bytes(text), _item_path(self.path, index))


def _member_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _item_path(path: str, index: int) -> str:
    return f"{path or '$'}[{index}]"


_Finding: TypeAlias = _Mismatch | InvalidParams | None
"""A mismatch further down, the finished error, or None where this very value does not fit."""


def find_input_error(tp: Any, raw: bytes | Raw, *, prefix: str = "") -> InvalidParams:
    """Find the first fault of the JSON text `raw` as a value of `tp`, any annotation that msgspec decodes.

    Call it when msgspec has refused `raw`. It always returns an error; where nothing better is known, for the whole
    (`$`, or `prefix`). `param` is the path in declared names, with `prefix` before it: members by name, items of arrays
    by index from 0, entries of a mapping as `*`, since their keys are the caller's. Members come in the order of the
    text, missing ones after them. `received` is `string`, `number`, `boolean`, `null`, `array`, `object`, `missing`,
    `unknown field`, or a plain word that is not in the closed list `accepted`; for a text that is no JSON at all, which
    no envelope lets through, also `malformed`.

    Raises nothing itself. An exception of a type's own `__post_init__` passes, unless it is a `ValueError` or `TypeError`.
    """
    mismatch = _Mismatch(type_info(tp), bytes(raw), prefix)
    work = _WORK
    while True:
        work -= len(mismatch.text) + _WORK_PER_VALUE * mismatch.text.count(b",")
        found = _descend(mismatch) if work >= 0 else None
        match found:
            case _Mismatch():
                mismatch = found
            case InvalidParams():
                return found
            case None:
                return _type_error(mismatch)


def _descend(mismatch: _Mismatch) -> _Finding:
    node = mismatch.type
    if isinstance(node, types.Metadata):
        return _Mismatch(node.type, mismatch.text, mismatch.path)
    if _kind(mismatch.text) not in json_kinds(node):
        return None
    try:
        return _descend_into_kind(mismatch)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _unreadable(mismatch)


def _descend_into_kind(mismatch: _Mismatch) -> _Finding:
    match mismatch.type:
        case types.UnionType() as node:
            return _in_union(mismatch, node)
        case types.CollectionType() as node:
            return _in_collection(mismatch, node)
        case types.TupleType() | types.NamedTupleType() as node:
            return _in_tuple(mismatch, node)
        case types.StructType(array_like=True) as node:
            return _in_tuple(mismatch, node)
        case types.StructType() | types.DataclassType() | types.TypedDictType() as node:
            return _in_members(mismatch, node)
        case types.DictType() as node:
            return _in_entries(mismatch, node)
        case types.AnyType() | types.CustomType(cls=builtins.object):
            return _in_anything(mismatch)
        case types.RawType() | types.FloatType(gt=None, ge=None, lt=None, le=None, multiple_of=None):
            return _unreadable(mismatch)
        case _:
            return None


def _refuser(node: types.Type) -> Callable[[Raw | bytes], bool]:
    """A function that tells whether msgspec refuses a text for this type."""
    decode = build_decoder(to_annotation(node))

    def refuses(text: Raw | bytes) -> bool:
        try:
            decode(text)
        except DECODE_ERRORS:
            return True
        return False

    return refuses


def _in_anything(mismatch: _Mismatch) -> _Finding:
    """Where every value is allowed, msgspec still refuses numbers out of range and values nested too deeply."""
    anything = types.AnyType()
    found: _Finding = None
    if _kind(mismatch.text) == "array":
        found = _in_collection(mismatch, types.ListType(anything))
    elif _kind(mismatch.text) == "object":
        found = _in_entries(mismatch, types.DictType(anything, anything))
    return found or _unreadable(mismatch)


def _in_collection(mismatch: _Mismatch, node: types.CollectionType) -> _Finding:
    refuses = _refuser(node.item_type)
    for index, text in enumerate(_values(mismatch)):
        if refuses(text):
            return mismatch.item(index, node.item_type, text)
    return None


def _in_tuple(mismatch: _Mismatch, node: TupleLike) -> _Finding:
    values = _values(mismatch)
    for index, item in enumerate(tuple_items(node)):
        if index < len(values):
            if _refuser(item.type)(values[index]):
                return mismatch.item(index, item.type, values[index])
        elif item.required:
            return _missing(_item_path(mismatch.path, index), item.type)
    return None


def _in_entries(mismatch: _Mismatch, node: types.DictType) -> _Finding:
    refuses = _refuser(node.value_type)
    refuses_key = _refuser(types.DictType(node.key_type, types.AnyType()))
    for key, text in _named_values(mismatch).items():
        if refuses_key(msgspec.json.encode({key: None})):
            return InvalidParams(
                mismatch.path or "$", describe_type(node), "unknown field", _accepted_keys(node.key_type)
            )
        if refuses(text):
            return mismatch.member("*", node.value_type, text)
    return None


def _accepted_keys(node: types.Type) -> tuple[str, ...] | None:
    """The closed list of keys, which are strings in JSON whatever they are decoded to."""
    closed = accepted_values(node)
    return None if closed is None else tuple(map(json_text, closed))


def _in_members(mismatch: _Mismatch, node: ObjectLike) -> _Finding:
    declared = object_members(node)
    given = _named_values(mismatch)
    strict = isinstance(node, types.StructType) and node.forbid_unknown_fields
    for name, text in given.items():
        field = declared.get(name)
        if field is None:
            if strict:
                return unknown_member(mismatch.path, name, tuple(declared))
        elif _refuser(field.type)(text):
            return mismatch.member(name, field.type, text)
    for name, field in declared.items():
        if field.required and name not in given:
            return _missing(_member_path(mismatch.path, name), field.type)
    return InvalidParams(mismatch.path or "$", "valid object", "object")  # refused by the type's own `__post_init__`


def _in_union(mismatch: _Mismatch, node: types.UnionType) -> _Finding:
    """The member that the value was meant for: the only one of its JSON type, or the one whose tag it has."""
    if accepted_values(node) is not None:
        return None
    kind = _kind(mismatch.text)
    meant = [member for member in map(without_metadata, node.types) if kind in json_kinds(member)]
    if len(meant) == 1:
        return _Mismatch(meant[0], mismatch.text, mismatch.path)
    tagged = [member for member in meant if isinstance(member, types.StructType) and member.tag is not None]
    return _by_tag(mismatch, tagged) if tagged else None


def _by_tag(mismatch: _Mismatch, tagged: list[types.StructType]) -> _Finding:
    tags = types.LiteralType(tuple(member.tag for member in tagged if member.tag is not None))
    name = tagged[0].tag_field or ""  # msgspec requires the same field in all members
    if tagged[0].array_like:
        found = next((mismatch.item(0, tags, text) for text in _values(mismatch)), None)
        path = _item_path(mismatch.path, 0)
    else:
        given = _named_values(mismatch)
        found = mismatch.member(name, tags, given[name]) if name in given else None
        path = _member_path(mismatch.path, name)
    if found is None:
        return _missing(path, tags)
    for member in tagged:
        if not _refuser(types.LiteralType((member.tag,)))(found.text):
            return _Mismatch(member, mismatch.text, mismatch.path)
    return found


def _values(mismatch: _Mismatch) -> list[Raw]:
    return decoder_for(list[Raw])(mismatch.text)


def _named_values(mismatch: _Mismatch) -> dict[str, Raw]:
    """Of a repeated key the last value counts."""
    return decoder_for(dict[str, Raw])(mismatch.text)


def _kind(text: bytes) -> str:
    first = text.lstrip(b" \t\r\n")[:1]
    return _KINDS.get(first[0], "malformed") if first else "missing"


def _type_error(mismatch: _Mismatch) -> InvalidParams:
    closed = accepted_values(mismatch.type)
    return InvalidParams(mismatch.path or "$", describe_type(mismatch.type), _received(mismatch.text, closed), closed)


def _received(text: bytes, closed: tuple[JsonScalar, ...] | None) -> str:
    kind = _kind(text)
    if closed is not None and kind == "string":
        try:
            word = decoder_for(str)(text)
        except DECODE_ERRORS:
            return kind
        if is_plain(word):
            return word
    return kind


def _missing(path: str, node: types.Type) -> InvalidParams:
    return InvalidParams(path, describe_type(node), "missing", accepted_values(node))


def _unreadable(mismatch: _Mismatch) -> InvalidParams:
    kind = _kind(mismatch.text)
    return InvalidParams(mismatch.path or "$", _UNREADABLE.get(kind, describe_type(mismatch.type)), kind)


def unknown_member(path: str, name: str, known: tuple[str, ...]) -> InvalidParams:
    """The error for a member that is none of `known`. It names the member if its name is a plain word."""
    expected = "one of" if known else "no members"
    where = _member_path(path, name) if is_plain(name) else path
    return InvalidParams(where or "$", expected, "unknown field", known or None)


def is_plain(word: str) -> bool:
    """Whether a word of the caller may be repeated: short, of word characters, and no secret."""
    if not _PLAIN.fullmatch(word):
        return False
    from ...errors.redaction import finds_secret  # late: the rules cost start-up time

    return not finds_secret(word)
