"""Turns a handler's signature into the input of its operation. Never calls the handler.

The parameters become the fields of a generated struct, and a decoder fills them. This happens once per handler, when it
is declared: a signature that can't be filled from JSON is an error then.
"""

from __future__ import annotations

import functools
import inspect  # msgspec has loaded it already, as it has the other two
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol, TypeAlias, get_args

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ...errors.decoders import DECODE_ERRORS, build_decoder, json_encoder, type_info
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams
from ..declarations import Asked
from .json_types import require_default

# Decodes the params of one request into the arguments of a handler. Never passes on a message of msgspec.
#
# A valid object takes one pass of msgspec, which parses and checks at once. A text that msgspec refuses is read a second
# time: params by position and repeated keys are still valid. Otherwise `input_errors` finds out what is wrong.


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


_Parameter: TypeAlias = inspect.Parameter
ANNOTATION_ERRORS: Final = (TypeError, NameError, AttributeError, SyntaxError, RuntimeError)
"""Exceptions of resolving an annotation, and of msgspec for a type that it can't decode."""


class InputModel(msgspec.Struct, frozen=True):
    """The input of an operation, made once per handler by `build_input`.

    `names` are the named parameters in the order of the signature, and `type` is their struct type (for JSON Schema).
    `extra` is the type of further members where the handler has `**params: T`, else None; for a handler with nothing
    but `**params`, `type` is `dict[str, T]`. `takes_context` says that the handler's first parameter is its context.
    `keyword_only` are the names that it takes by keyword only. `rest` is the param that is a list here and `*args` of the
    handler. With `whole` the handler takes the params as they are, as one
    value of `type`, and `names` are the attributes of that type where it is a struct.
    """

    type: Any
    names: tuple[str, ...]
    extra: Any
    takes_context: bool
    keyword_only: tuple[str, ...]
    decode: InputDecoder
    whole: bool = False
    rest: str = ""

    @property
    def takes_all(self) -> bool:
        """Whether what `decode` returns has every member that was sent: `**params: Any`. Others may leave some out."""
        return not self.names and (self.extra is Any or self.extra is object)

    def value(self, arguments: Arguments, name: str) -> Any:
        """The value of one named parameter in what `decode` returned. Raises `ValueError` for a name not in `names`; whole params
        may have any other members, and None for those that they lack."""
        if self.whole:
            params = arguments[0]
            return params.get(name) if isinstance(params, dict) else getattr(params, name, None)
        return arguments[self.names.index(name)]

    def invoker(self, func: Callable[..., Any]) -> Callable[[Any, Arguments], Any]:
        """`invoke(ctx, arguments)`: calls the handler with what `decode` returned, and with `ctx` first if it takes one.

        The result is the handler's own: a value, a coroutine, an asynchronous generator.
        """
        with_context, with_extra = self.takes_context, self.extra is not None
        if with_extra and not self.names:
            return (lambda ctx, args: func(ctx, **args[0])) if with_context else (lambda _, args: func(**args[0]))
        if not self.keyword_only and not with_extra and not self.rest:
            return (lambda ctx, arguments: func(ctx, *arguments)) if with_context else (lambda _, args: func(*args))
        count = len(self.names) - len(self.keyword_only)
        indexes = tuple(enumerate(self.keyword_only, count))

        def invoke(ctx: Any, arguments: Arguments) -> Any:
            by_name = {name: arguments[index] for index, name in indexes}
            if with_extra:
                by_name |= arguments[-1]
            positional = arguments[:count]
            if self.rest:
                positional = (*positional[:-1], *positional[-1])
            return func(ctx, *positional, **by_name) if with_context else func(*positional, **by_name)

        return invoke


def build_input(func: Callable[..., Any], *, takes_rest: bool = False) -> InputModel:
    """The input that the signature of `func` describes.

    A first parameter that is named `ctx` or annotated `Context` is the context and no input. A positional-only parameter
    (`def f(params: T, /)`) takes the whole params; it must be the only one. With `takes_rest`, `*args: T` is a param too, a list
    that may be left out. `**params: Any` (or `object`) takes every further member; with any other type, the members of
    `META_MEMBERS` are left out.

    Raises `ValueError` with one line that names the handler, the parameter and the remedy, for an annotation that is
    missing, can't be resolved or can't be decoded from JSON, and for `*args`.
    """
    where = getattr(func, "__qualname__", type(func).__name__)
    parameters = list(inspect.signature(func).parameters.values())
    rest = next((each.name for each in parameters if each.kind is _Parameter.VAR_POSITIONAL and takes_rest), "")
    parameters = [_as_list(func, where, each) if each.name == rest else each for each in parameters]
    context = _takes_context(func, parameters)
    if context and parameters[0].kind not in (_Parameter.POSITIONAL_ONLY, _Parameter.POSITIONAL_OR_KEYWORD):
        raise ValueError(f"{where}: the context must be the first positional parameter, as in `def f(ctx, …)`")
    inputs = parameters[context:]
    if inputs and inputs[0].kind is _Parameter.POSITIONAL_ONLY:
        return _whole_input(where, func, inputs, takes_context=context)
    hints = {parameter.name: _type_of(where, func, parameter) for parameter in inputs}
    named = [parameter for parameter in inputs if parameter.kind is not _Parameter.VAR_KEYWORD]
    names = tuple(parameter.name for parameter in named)
    keywords = tuple(parameter.name for parameter in named if parameter.kind is _Parameter.KEYWORD_ONLY)
    struct = _struct(func, named, hints)
    if len(named) == len(inputs):
        return InputModel(struct, names, None, context, keywords, named_decoder(struct, names), rest=rest)
    extra = hints[inputs[-1].name]
    extras = extra_decoder(extra, _positional_names(func, parameters) - set(names))
    if not named:
        return InputModel(dict[str, extra], names, extra, context, keywords, extras)  # type: ignore[valid-type]
    return InputModel(
        struct, names, extra, context, keywords, named_and_extra_decoder(struct, names, extras), rest=rest
    )


def _as_list(func: Callable[..., Any], where: str, parameter: _Parameter) -> _Parameter:
    """`*args: T` as a param that is a list."""
    named = parameter.replace(kind=_Parameter.POSITIONAL_OR_KEYWORD)
    hint = _type_of(where, func, named)
    return named.replace(annotation=list[hint], default=[])  # type: ignore[valid-type]


def _whole_input(where: str, func: Callable[..., Any], inputs: list[_Parameter], *, takes_context: bool) -> InputModel:
    parameter = inputs[0]
    what = f"{where}: parameter {parameter.name!r}"
    if len(inputs) > 1:
        if parameter.annotation is _Parameter.empty:
            raise ValueError(f"{what} has no annotation; where it is the context, write `{parameter.name}: Context`")
        raise ValueError(
            f"{what} is positional-only and so takes the whole params, beside which no other parameter can stand;"
            " remove the others, or the /"
        )
    hint = _type_of(where, func, parameter)
    if not (hasattr(hint, "__struct_fields__") or _may_be_params(hint)):
        raise ValueError(f"{what} takes the whole params, which are an object or an array; remove the / for one param")
    return InputModel(
        hint, getattr(hint, "__struct_fields__", ()), None, takes_context, (), whole_decoder(hint), whole=True
    )


def _may_be_params(hint: Any) -> bool:
    from .type_phrases import json_kinds  # late: a struct, which most are, needs no look

    return not json_kinds(type_info(hint)).isdisjoint({"object", "array"})


def _takes_context(func: Callable[..., Any], parameters: list[_Parameter]) -> bool:
    if not parameters:
        return False
    first = parameters[0]
    if first.name == "ctx" and first.annotation in _NO_CONTEXTS:
        raise ValueError("parameter 'ctx' is the context: annotate it Context, or rename the param")
    return first.name == "ctx" or _is_context(func, first)


_NO_CONTEXTS: Final = tuple(kind for each in (str, int, float, bool, bytes) for kind in (each, each.__name__))
"""Annotations of a param that only happens to be called `ctx`."""


def _is_context(func: Callable[..., Any], parameter: _Parameter) -> bool:
    try:
        return _is_context_class(_resolved(func, parameter.name, parameter.annotation))
    except ANNOTATION_ERRORS:  # imported for type checkers only; `_type_of` reports any other error
        return str(parameter.annotation).rpartition(".")[2] == "Context"


def _is_context_class(hint: object) -> bool:
    """Whether this is `Context`, which stands above this module."""
    return getattr(hint, "_is_context", False) is True


def _type_of(where: str, func: Callable[..., Any], parameter: _Parameter) -> Any:
    what = f"{where}: parameter {parameter.name!r}"
    if parameter.kind is _Parameter.VAR_POSITIONAL:
        raise ValueError(
            f"{what} takes any number of values, but params come by name; annotate a list instead,"
            " or give a decorator's wrapper @functools.wraps"
        )
    if parameter.name.startswith("__"):
        raise ValueError(f"{what} can't begin with two underscores; rename it")
    if parameter.annotation is _Parameter.empty:
        if parameter.name == "ctx":
            raise ValueError(f"{what} {_CONTEXT_FIRST}")
        raise ValueError(f"{what} has no annotation; {_REMEDIES.get(parameter.name, _REMEDY)}")
    hint: Any = None
    try:
        hint = _resolved(func, parameter.name, parameter.annotation)
        if _is_context_class(hint):
            raise ValueError(f"{what} {_CONTEXT_FIRST}")
        build_decoder(hint)
    except ANNOTATION_ERRORS as error:
        reason = "any is a function; write Any of typing" if hint is any else " ".join(str(error).split())
        raise ValueError(f"{what} has an annotation that can't be decoded from JSON: {reason}") from error
    marks = get_args(Asked)
    if (
        not set(marks).isdisjoint(_classes(hint))
        or isinstance(parameter.default, marks)
        or any(parameter.default is mark for mark in marks)
    ):
        raise ValueError(f'{what}: what the client is asked is written `Annotated[bool, mcp.Ask("Really?")]`')
    return hint


_CONTEXT_FIRST: Final = "is the context, which comes first: write `def f(ctx: Context, …)`"
_REMEDY: Final = "annotate it with the type of the param"
_REMEDIES: Final = {
    "self": "a handler is a function, not a method: declare it outside of the class",
    "context": f"{_REMEDY}, or Context for what the handler may know and do",
}


def _classes(hint: Any) -> Iterator[type]:
    """The classes among what annotates a type."""
    return (mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, type))


def return_type(func: Callable[..., Any]) -> Any:
    """Return the annotation of a handler's result; Any without one. Raises `TypeError` for one that can't be read."""
    annotation = inspect.signature(func).return_annotation
    if annotation is inspect.Signature.empty:
        return Any
    try:
        return _resolved(func, "return", annotation)
    except ANNOTATION_ERRORS as error:
        raise TypeError(f"the result has an annotation that can't be resolved: {error}") from error


def _resolved(func: Callable[..., Any], name: str, annotation: Any) -> Any:
    """One annotation, resolved by itself: the context's own is often imported for type checkers only."""

    def holder() -> None: ...

    holder.__annotations__ = {name: annotation}
    namespace = getattr(_source(func), "__globals__", {})
    return typing.get_type_hints(holder, namespace, include_extras=True)[name]


def _source(func: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind wrappers, partial calls and callable objects: the one with code and globals."""
    source = inspect.unwrap(func)
    while isinstance(source, functools.partial):
        source = inspect.unwrap(source.func)
    return source if hasattr(source, "__code__") else type(source).__call__


def _struct(func: Callable[..., Any], named: list[_Parameter], hints: dict[str, Any]) -> type[msgspec.Struct]:
    for parameter in named:
        if parameter.default is not _Parameter.empty:
            require_default(parameter.default, hints[parameter.name], f"parameter {parameter.name!r}")
    fields: list[Any] = [
        (parameter.name, hints[parameter.name])
        if parameter.default is _Parameter.empty
        else (parameter.name, hints[parameter.name], _default(parameter.default))
        for parameter in named
    ]
    words = getattr(func, "__name__", type(func).__name__).split("_")
    name = "".join(word[:1].upper() + word[1:] for word in words) + "Input"
    return input_struct(name, fields, func.__module__)


def _default(value: Any) -> Any:
    """The default of a field; copied for each call where a handler could change it."""
    mutable = isinstance(value, (list, dict, set, bytearray)) and len(value) > 0  # msgspec itself copies empty ones
    if mutable or (isinstance(value, msgspec.Struct) and not value.__struct_config__.frozen):
        import copy  # late: few signatures need it

        return msgspec.field(default_factory=lambda: copy.deepcopy(value))
    return value


def _positional_names(func: Callable[..., Any], parameters: Iterable[_Parameter]) -> set[str]:
    """Names that extra members can't have, because the handler takes them by position: the context, `self`, params."""
    code = getattr(_source(func), "__code__", None)
    own = code.co_varnames[code.co_posonlyargcount : code.co_argcount] if code else ()
    return {*own} | {p.name for p in parameters if p.kind is _Parameter.POSITIONAL_OR_KEYWORD}
