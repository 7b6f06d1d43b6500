"""Finds the first fault of a JSON text against a type, and says it in declared facts.

The walk goes down one level at a time: of the values that an object or array holds, the first that msgspec refuses
is the way to the fault. What is said of it comes from the type alone. msgspec's own messages echo keys and values
and are never looked at; of the text, only a plain word that the caller misspelt may be repeated (`_plain`).
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Raw
from msgspec import inspect as types

from ...errors.failures import InvalidParams
from .msgspec_errors import REFUSALS
from .type_phrases import Fielded, Slotted, accepted, annotation, kinds, members, phrase, slots

# Opening a level reads it twice and makes an object of every value in it, for each of which a comma stands. What a
# walk may spend in all keeps the worst 10 MiB at about half a second; then the level reached is what is named.
_WORK: Final = 64 * 1024 * 1024
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
    "array": "array nested less deeply",
    "object": "object nested less deeply",
}


class _Place(msgspec.Struct, frozen=True):
    """A value that its type refuses, and the declared path to it."""

    type: types.Type
    text: bytes
    path: str

    def member(self, name: str, node: types.Type, text: Raw) -> _Place:
        return _Place(node, bytes(text), _member_path(self.path, name))

    def item(self, index: int, node: types.Type, text: Raw) -> _Place:
        return _Place(node, bytes(text), _item_path(self.path, index))


def _member_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _item_path(path: str, index: int) -> str:
    return f"{path or '$'}[{index}]"


# A place further in, the fault itself, or None when it is this very value that does not fit.
_Next: TypeAlias = _Place | InvalidParams | None


def find_fault(tp: Any, raw: bytes | Raw, *, prefix: str = "") -> InvalidParams:
    """The first fault of the JSON text `raw` against `tp`, any annotation that msgspec decodes.

    To be called when msgspec has refused `raw`; it then always answers, and names the whole (`$`, or `prefix`) where
    nothing better is known. `param` is the path in declared names, with `prefix` before it: members by name,
    places of arrays by index from 0, entries of a mapping as `*`, since their keys are the caller's. Members come in
    the order of the text, missing ones after them. `received` is `string`, `number`, `boolean`, `null`, `array`,
    `object`, `missing`, `unknown field`, or a plain word that is not in the closed list `accepted` (for a text that
    is no JSON at all, which no envelope lets through, also `malformed`).

    Raises nothing of its own; what a type's own `__post_init__` raises beside `ValueError` and `TypeError` passes.
    """
    place = _Place(types.type_info(tp), bytes(raw), prefix)
    work = _WORK
    while True:
        work -= len(place.text) + _WORK_PER_VALUE * place.text.count(b",")
        found = _look(place) if work >= 0 else None
        match found:
            case _Place():
                place = found
            case InvalidParams():
                return found
            case None:
                return _misfit(place)


def _look(place: _Place) -> _Next:
    node = place.type
    if isinstance(node, types.Metadata):
        return _Place(node.type, place.text, place.path)
    if _kind(place.text) not in kinds(node):
        return None
    try:
        return _inside(place)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _unreadable(place)


def _inside(place: _Place) -> _Next:
    match place.type:
        case types.UnionType() as node:
            return _in_union(place, node)
        case types.CollectionType() as node:
            return _in_collection(place, node)
        case types.TupleType() | types.NamedTupleType() as node:
            return _in_slots(place, node)
        case types.StructType(array_like=True) as node:
            return _in_slots(place, node)
        case types.StructType() | types.DataclassType() | types.TypedDictType() as node:
            return _in_members(place, node)
        case types.DictType() as node:
            return _in_entries(place, node)
        case types.AnyType() | types.CustomType(cls=builtins.object):
            return _in_anything(place)
        case types.RawType() | types.FloatType(gt=None, ge=None, lt=None, le=None, multiple_of=None):
            return _unreadable(place)
        case _:
            return None


def _refuser(node: types.Type) -> Callable[[Raw | bytes], bool]:
    """Tells whether msgspec refuses a text for this type."""
    decode = msgspec.json.Decoder(annotation(node)).decode

    def refuses(text: Raw | bytes) -> bool:
        try:
            decode(text)
        except REFUSALS:
            return True
        return False

    return refuses


def _in_anything(place: _Place) -> _Next:
    """Even what may be anything is refused for a number beyond every number type, or for its depth."""
    anything = types.AnyType()
    found: _Next = None
    if _kind(place.text) == "array":
        found = _in_collection(place, types.ListType(anything))
    elif _kind(place.text) == "object":
        found = _in_entries(place, types.DictType(anything, anything))
    return found or _unreadable(place)


def _in_collection(place: _Place, node: types.CollectionType) -> _Next:
    refuses = _refuser(node.item_type)
    for index, text in enumerate(_values(place)):
        if refuses(text):
            return place.item(index, node.item_type, text)
    return None


def _in_slots(place: _Place, node: Slotted) -> _Next:
    values = _values(place)
    for index, slot in enumerate(slots(node)):
        if index < len(values):
            if _refuser(slot.type)(values[index]):
                return place.item(index, slot.type, values[index])
        elif slot.required:
            return _missing(_item_path(place.path, index), slot.type)
    return None


def _in_entries(place: _Place, node: types.DictType) -> _Next:
    refuses = _refuser(node.value_type)
    refuses_key = _refuser(types.DictType(node.key_type, types.AnyType()))
    for key, text in _named_values(place).items():
        if refuses_key(msgspec.json.encode({key: None})):
            return InvalidParams(place.path or "$", phrase(node), "unknown field", accepted(node.key_type))
        if refuses(text):
            return place.member("*", node.value_type, text)
    return None


def _in_members(place: _Place, node: Fielded) -> _Next:
    declared = members(node)
    given = _named_values(place)
    strict = isinstance(node, types.StructType) and node.forbid_unknown_fields
    for name, text in given.items():
        field = declared.get(name)
        if field is None:
            if strict:
                return unknown_member(place.path, name, tuple(declared))
        elif _refuser(field.type)(text):
            return place.member(name, field.type, text)
    for name, field in declared.items():
        if field.required and name not in given:
            return _missing(_member_path(place.path, name), field.type)
    return InvalidParams(place.path or "$", "valid object", "object")  # by a rule that the type checks itself


def _in_union(place: _Place, node: types.UnionType) -> _Next:
    """The member that the value was meant for: the only one of its JSON type, or the one whose tag it bears."""
    if accepted(node) is not None:
        return None
    kind = _kind(place.text)
    meant = [member for member in map(_bare, node.types) if kind in kinds(member)]
    if len(meant) == 1:
        return _Place(meant[0], place.text, place.path)
    tagged = [member for member in meant if isinstance(member, types.StructType) and member.tag is not None]
    return _by_tag(place, tagged) if tagged else None


def _bare(node: types.Type) -> types.Type:
    return _bare(node.type) if isinstance(node, types.Metadata) else node


def _by_tag(place: _Place, tagged: list[types.StructType]) -> _Next:
    tags = types.LiteralType(tuple(member.tag for member in tagged if member.tag is not None))
    name = tagged[0].tag_field or ""  # msgspec wants it to be the same in all members
    if tagged[0].array_like:
        found = next((place.item(0, tags, text) for text in _values(place)), None)
        path = _item_path(place.path, 0)
    else:
        given = _named_values(place)
        found = place.member(name, tags, given[name]) if name in given else None
        path = _member_path(place.path, name)
    if found is None:
        return _missing(path, tags)
    for member in tagged:
        if not _refuser(types.LiteralType((member.tag,)))(found.text):
            return _Place(member, place.text, place.path)
    return found


def _values(place: _Place) -> list[Raw]:
    return msgspec.json.decode(place.text, type=list[Raw])


def _named_values(place: _Place) -> dict[str, Raw]:
    """Of a repeated key the last value."""
    return msgspec.json.decode(place.text, type=dict[str, Raw])


def _kind(text: bytes) -> str:
    first = text.lstrip(b" \t\r\n")[:1]
    return _KINDS.get(first[0], "malformed") if first else "missing"


def _misfit(place: _Place) -> InvalidParams:
    closed = accepted(place.type)
    return InvalidParams(place.path or "$", phrase(place.type), _received(place.text, closed), closed)


def _received(text: bytes, closed: tuple[str, ...] | None) -> str:
    kind = _kind(text)
    if closed is not None and kind == "string":
        try:
            word = msgspec.json.decode(text, type=str)
        except REFUSALS:
            return kind
        if _plain(word):
            return word
    return kind


def _missing(path: str, node: types.Type) -> InvalidParams:
    return InvalidParams(path, phrase(node), "missing", accepted(node))


def _unreadable(place: _Place) -> InvalidParams:
    kind = _kind(place.text)
    return InvalidParams(place.path or "$", _UNREADABLE.get(kind, phrase(place.type)), kind)


def unknown_member(path: str, name: str, known: tuple[str, ...]) -> InvalidParams:
    """An object's member that is none of `known`: refused by its name where that is a plain word, else unnamed."""
    expected = "one of" if known else "no members"
    where = _member_path(path, name) if _plain(name) else path
    return InvalidParams(where or "$", expected, "unknown field", known or None)


def _plain(word: str) -> bool:
    """Whether the caller's own word may be repeated: short, of word characters, and no secret."""
    if not _PLAIN.fullmatch(word):
        return False
    from ...errors.redaction import finds_secret  # late: the rules cost start-up time

    return not finds_secret(word)
