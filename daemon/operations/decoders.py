"""Decodes the params of one request into the arguments of a handler. Never passes on a message of msgspec.

A valid object takes one pass of msgspec, which parses and checks at once. A text that msgspec refuses is read a second
time: params by position and repeated keys are still valid. Otherwise `input_errors` finds out what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ...errors.decoders import DECODE_ERRORS, build_decoder, json_encoder
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams

Arguments: TypeAlias = tuple[Any, ...]

META_MEMBERS: Final = ("_meta", "workDoneToken", "partialResultToken")
"""Members that every request may have beside its params: MCP's metadata, and LSP's tokens for progress and results."""

_encode: Final = json_encoder()
_read_raw: Final = msgspec.json.Decoder(dict[str, Raw] | list[Raw] | None).decode


class InputDecoder(Protocol):
    """Params as arguments, in the order of `InputModel.names`; last the dict of extra members, if the handler has one.

    `raw` is an object, an array in the order of the signature, `null` or None (no params). Raises `FailureError`
    that carries `InvalidParams`, whose path begins with `prefix`.
    """

    def __call__(self, raw: Raw | bytes | None, prefix: str = "") -> Arguments: ...


def input_struct(
    name: str, fields: list[Any], module: str, *, base: type[msgspec.Struct] | None = None
) -> type[msgspec.Struct]:
    """A struct type whose instances hold the params of one call. Raises what `msgspec.defstruct` raises."""
    return msgspec.defstruct(
        name,
        fields,
        bases=(base,) if base else None,
        module=module,
        kw_only=True,
        frozen=True,
        forbid_unknown_fields=True,
        gc=False,  # lives for one call and is in no reference cycle
    )


def named_decoder(struct: type[msgspec.Struct], names: tuple[str, ...]) -> InputDecoder:
    """For an `input_struct` with the fields `names`. Refuses every other member except those of `META_MEMBERS`."""
    meta = [(name, Raw, Raw()) for name in META_MEMBERS if name not in names]
    read = build_decoder(input_struct(struct.__name__, meta, struct.__module__, base=struct))
    astuple = msgspec.structs.astuple
    count = len(names)

    def decode(raw: Raw | bytes | None, prefix: str = "") -> Arguments:
        try:
            return astuple(read(b"{}" if raw is None else raw))[:count]
        except DECODE_ERRORS:
            pass  # and drop msgspec's exception: one raised in here would carry its message
        return astuple(_read_again(read, struct, names, raw, prefix))[:count]

    return decode


def extra_decoder(extra: Any, taken: set[str]) -> InputDecoder:
    """For `**params: T` alone: members of any name except the `taken`, all of the type `extra`, as one dict."""
    tp: Any = dict[str, extra]  # a type made at run time is none to a type checker
    read = build_decoder(tp)
    left_out = () if extra is Any or extra is object else META_MEMBERS

    def decode(raw: Raw | bytes | None, prefix: str = "") -> Arguments:
        try:
            given = read(b"{}" if raw is None else raw)
        except DECODE_ERRORS:
            given = None
        if given is None:
            given = _read_again(read, tp, (), raw, prefix)
        for name in left_out:
            given.pop(name, None)
        if not taken.isdisjoint(given):
            from .input_errors import unknown_member  # late: see `_input_error`

            raise FailureError(unknown_member(prefix, min(taken & given.keys()), ()))
        return (given,)

    return decode


def named_and_extra_decoder(struct: type[msgspec.Struct], names: tuple[str, ...], extras: InputDecoder) -> InputDecoder:
    """For named members as `named_decoder` takes them, and all others as `extras`, an `extra_decoder`, takes them."""
    named = named_decoder(struct, names)

    def decode(raw: Raw | bytes | None, prefix: str = "") -> Arguments:
        given = _members(struct, names, raw, prefix)
        own = {name: given.pop(name) for name in names if name in given}
        return named(_encode(own), prefix) + extras(_encode(given), prefix)

    return decode


def whole_decoder(tp: Any) -> InputDecoder:
    """For a handler that takes the whole params as one value of type `tp`. Absent params are null where `tp` takes null,
    else an empty object."""
    read = build_decoder(tp)
    try:
        read(b"null")
        absent = b"null"
    except DECODE_ERRORS:
        absent = b"{}"

    def decode(raw: Raw | bytes | None, prefix: str = "") -> Arguments:
        text = absent if raw is None else raw
        try:
            return (read(text),)
        except DECODE_ERRORS:
            pass  # as in `named_decoder`
        raise _input_error(tp, text, prefix)

    return decode


def whole_value(params: object, member: str) -> Any:
    """The value of one member of whole params; None where they have no such member."""
    return params.get(member) if isinstance(params, dict) else getattr(params, member, None)


def _read_again(
    read: Callable[[bytes], Any], tp: Any, names: tuple[str, ...], raw: Raw | bytes | None, prefix: str
) -> Any:
    given = _members(tp, names, raw, prefix)
    for name in META_MEMBERS:
        if name not in names:
            given.pop(name, None)
    text = _encode(given)
    try:
        return read(text)
    except DECODE_ERRORS:
        pass
    raise _input_error(tp, text, prefix)


def _members(tp: Any, names: tuple[str, ...], raw: Raw | bytes | None, prefix: str) -> dict[str, Raw]:
    """The params by name, whether sent by name or by position. Of a repeated name the last value counts."""
    given: dict[str, Raw] | list[Raw] | None | UnsetType = UNSET
    try:
        given = _read_raw(b"null" if raw is None else raw)
    except DECODE_ERRORS:
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
            raise _input_error(tp, raw or b"", prefix)


def _input_error(tp: Any, raw: Raw | bytes, prefix: str) -> FailureError:
    from .input_errors import find_input_error  # late: neither the start nor a valid request needs it

    return FailureError(find_input_error(tp, raw, prefix=prefix))
