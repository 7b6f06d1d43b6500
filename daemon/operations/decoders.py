"""Decodes the input of one request into the values of a handler's parameters.

A good object is one pass of msgspec, which parses and checks at once. What msgspec refuses is read once more at
leisure: given by position, or wrong only where a key is repeated, it is still good; else `faults` says what is wrong.
msgspec's own words go nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams
from .msgspec_errors import REFUSALS

Values: TypeAlias = tuple[Any, ...]

ASIDE: Final = ("_meta", "workDoneToken", "partialResultToken")
"""Members that say how a request is followed, not what it asks (MCP's metadata, LSP's tokens): taken anywhere."""

_encode: Final = msgspec.json.Encoder().encode
_read: Final = msgspec.json.Decoder(dict[str, Raw] | list[Raw] | None).decode


class Decode(Protocol):
    """Input as values, in the order of `InputModel.names`, and last the dict of further members if it has a `rest`.

    `raw` is an object, an array in the order of the signature, `null` or None (no params). Raises `FailureError`
    that carries `InvalidParams`, whose path begins with `prefix`.
    """

    def __call__(self, raw: Raw | bytes | None, prefix: str = "") -> Values: ...


def input_struct(
    name: str, fields: list[Any], module: str, *, base: type[msgspec.Struct] | None = None
) -> type[msgspec.Struct]:
    """A struct type whose instances hold the input of one call. Raises what `msgspec.defstruct` raises."""
    return msgspec.defstruct(
        name,
        fields,
        bases=(base,) if base else None,
        module=module,
        kw_only=True,
        frozen=True,
        forbid_unknown_fields=True,
        gc=False,  # lives for one call and is in no cycle
    )


def decode_named(struct: type[msgspec.Struct], names: tuple[str, ...]) -> Decode:
    """For an `input_struct` with the fields `names`; no other members but those of `ASIDE`."""
    aside = [(name, Raw, Raw()) for name in ASIDE if name not in names]
    read = msgspec.json.Decoder(input_struct(struct.__name__, aside, struct.__module__, base=struct)).decode
    astuple = msgspec.structs.astuple
    count = len(names)

    def decode(raw: Raw | bytes | None, prefix: str = "") -> Values:
        try:
            return astuple(read(b"{}" if raw is None else raw))[:count]
        except REFUSALS:
            pass  # and forget msgspec's words: an exception raised in here would carry them
        return astuple(_read_again(read, struct, names, raw, prefix))[:count]

    return decode


def decode_rest(rest: Any, taken: set[str]) -> Decode:
    """For members of any name but the `taken`, all of the type `rest`: gives one dict."""
    tp: Any = dict[str, rest]  # a type made at run time is none to a type checker
    read = msgspec.json.Decoder(tp).decode
    left_out = () if rest is Any or rest is object else ASIDE

    def decode(raw: Raw | bytes | None, prefix: str = "") -> Values:
        try:
            given = read(b"{}" if raw is None else raw)
        except REFUSALS:
            given = None
        if given is None:
            given = _read_again(read, tp, (), raw, prefix)
        for name in left_out:
            given.pop(name, None)
        if not taken.isdisjoint(given):
            from .input_errors import unknown_member  # late: see `_refusal`

            raise FailureError(unknown_member(prefix, min(taken & given.keys()), ()))
        return (given,)

    return decode


def decode_both(struct: type[msgspec.Struct], names: tuple[str, ...], others: Decode) -> Decode:
    """For named members as `decode_named`, and further ones as `others` (of `decode_rest`) decodes them."""
    named = decode_named(struct, names)

    def decode(raw: Raw | bytes | None, prefix: str = "") -> Values:
        given = _members(struct, names, raw, prefix)
        own = {name: given.pop(name) for name in names if name in given}
        return named(_encode(own), prefix) + others(_encode(given), prefix)

    return decode


def _read_again(
    read: Callable[[bytes], Any], tp: Any, names: tuple[str, ...], raw: Raw | bytes | None, prefix: str
) -> Any:
    given = _members(tp, names, raw, prefix)
    for name in ASIDE:
        if name not in names:
            given.pop(name, None)
    text = _encode(given)
    try:
        return read(text)
    except REFUSALS:
        pass
    raise _refusal(tp, text, prefix)


def _members(tp: Any, names: tuple[str, ...], raw: Raw | bytes | None, prefix: str) -> dict[str, Raw]:
    """The input's members by name, whichever way they came; of a repeated name the last."""
    given: dict[str, Raw] | list[Raw] | None | UnsetType = UNSET
    try:
        given = _read(b"null" if raw is None else raw)
    except REFUSALS:
        pass
    match given:
        case None | []:
            return {}
        case dict():
            return given
        case list() if len(given) <= len(names):
            return dict(zip(names, given, strict=False))
        case list() if names:
            raise FailureError(InvalidParams(prefix or "$", f"at most {len(names)} params", "array"))
        case _:
            raise _refusal(tp, raw or b"", prefix)


def _refusal(tp: Any, raw: Raw | bytes, prefix: str) -> FailureError:
    from .input_errors import find_fault  # late: neither a start nor a good request needs it

    return FailureError(find_fault(tp, raw, prefix=prefix))
