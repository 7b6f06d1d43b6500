"""A handler's signature as what its operation takes.

The parameters become the fields of a generated struct and of the decoder that fills them. All of it happens once, at
the start, where a signature that can be no input is an error. Never calls the handler by itself.
"""

from __future__ import annotations

import functools
import inspect  # msgspec has loaded it already, as it has the other two
import typing
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import msgspec

from .context import Context
from .decoders import Decode, Values, decode_both, decode_named, decode_rest, input_struct

__all__ = ["InputModel", "Values", "build_input"]

_Parameter: TypeAlias = inspect.Parameter
_UNUSABLE: Final = (TypeError, NameError, AttributeError, SyntaxError, RuntimeError)  # of resolving, and of msgspec


class InputModel(msgspec.Struct, frozen=True):
    """What an operation takes, made once per handler by `build_input`.

    `names` are the named parameters in the order of the signature, `type` is their struct type (for JSON Schema).
    `rest` is the type of further members where the handler has `**params: T`, else None; where it has nothing but
    `**params`, `type` is `dict[str, T]`. `context` says that the handler takes its context first, and `keywords` are
    the names that it takes by keyword only.
    """

    type: Any
    names: tuple[str, ...]
    rest: Any
    context: bool
    keywords: tuple[str, ...]
    decode: Decode

    def value(self, values: Values, name: str) -> Any:
        """The value of one named parameter in what `decode` gave. Raises `ValueError` for a name not in `names`."""
        return values[self.names.index(name)]

    def invoker(self, func: Callable[..., Any]) -> Callable[[Any, Values], Any]:
        """`invoke(ctx, values)`: calls the handler with what `decode` gave, and with `ctx` first if it takes one.

        The result is the handler's own: a value, a coroutine, an asynchronous generator.
        """
        with_context, with_rest = self.context, self.rest is not None
        if not self.keywords and not with_rest:
            return (lambda ctx, values: func(ctx, *values)) if with_context else (lambda _, values: func(*values))
        count = len(self.names) - len(self.keywords)
        places = tuple(enumerate(self.keywords, count))

        def invoke(ctx: Any, values: Values) -> Any:
            by_name = {name: values[place] for place, name in places}
            if with_rest:
                by_name |= values[-1]
            return func(ctx, *values[:count], **by_name) if with_context else func(*values[:count], **by_name)

        return invoke


def build_input(func: Callable[..., Any], *, skip_context: bool | None = None) -> InputModel:
    """Read the signature of `func`.

    With `skip_context` its first parameter is the context and no input; None means that it is if it is named `ctx`
    or annotated `Context`. `**params: Any` (or `object`) takes every further member as it is; with any
    other type, those of `ASIDE` are left out.

    Raises `ValueError`, in one line that names the handler and the parameter: an annotation that is missing, can't
    be resolved or can't come from JSON; a positional-only parameter; `*args`.
    """
    where = getattr(func, "__qualname__", type(func).__name__)
    parameters = list(inspect.signature(func).parameters.values())
    context = _takes_context(func, parameters) if skip_context is None else skip_context
    if context:
        _check_context(where, parameters[:1])
    inputs = parameters[context:]
    hints = {parameter.name: _type_of(where, func, parameter) for parameter in inputs}
    named = [parameter for parameter in inputs if parameter.kind is not _Parameter.VAR_KEYWORD]
    names = tuple(parameter.name for parameter in named)
    keywords = tuple(parameter.name for parameter in named if parameter.kind is _Parameter.KEYWORD_ONLY)
    struct = _struct(func, named, hints)
    if len(named) == len(inputs):
        return InputModel(struct, names, None, context, keywords, decode_named(struct, names))
    rest = hints[inputs[-1].name]
    others = decode_rest(rest, _taken(func, parameters) - set(names))
    if not named:
        return InputModel(dict[str, rest], names, rest, context, keywords, others)  # type: ignore[valid-type]
    return InputModel(struct, names, rest, context, keywords, decode_both(struct, names, others))


def _takes_context(func: Callable[..., Any], parameters: list[_Parameter]) -> bool:
    if not parameters or parameters[0].name == "ctx":
        return bool(parameters)
    try:
        return _resolved(func, parameters[0]) is Context
    except _UNUSABLE:  # imported for type checkers only, or else `_type_of` will say what is wrong
        return str(parameters[0].annotation).rpartition(".")[2] == Context.__name__


def _check_context(where: str, first: list[_Parameter]) -> None:
    if not first or first[0].kind not in (_Parameter.POSITIONAL_ONLY, _Parameter.POSITIONAL_OR_KEYWORD):
        raise ValueError(f"{where}: the context must be the first positional parameter")


def _type_of(where: str, func: Callable[..., Any], parameter: _Parameter) -> Any:
    what = f"{where}: parameter {parameter.name!r}"
    if parameter.kind is _Parameter.POSITIONAL_ONLY:
        raise ValueError(f"{what} is positional-only, but params come by name")
    if parameter.kind is _Parameter.VAR_POSITIONAL:
        raise ValueError(f"{what} takes any number of values, but params come by name")
    if parameter.name.startswith("__"):
        raise ValueError(f"{what} can't begin with two underscores")
    if parameter.annotation is _Parameter.empty:
        raise ValueError(f"{what} has no annotation")
    try:
        hint = _resolved(func, parameter)
        msgspec.json.Decoder(hint)
    except _UNUSABLE as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{what} has an annotation that can't be used: {reason}") from error
    return hint


def _resolved(func: Callable[..., Any], parameter: _Parameter) -> Any:
    """One annotation by itself: that of the context often exists for type checkers only."""

    def holder() -> None: ...

    holder.__annotations__ = {parameter.name: parameter.annotation}
    namespace = getattr(_source(func), "__globals__", {})
    return typing.get_type_hints(holder, namespace, include_extras=True)[parameter.name]


def _source(func: Callable[..., Any]) -> Callable[..., Any]:
    """The function that is written down, behind wrappers, partial calls and callable objects."""
    source = inspect.unwrap(func)
    while isinstance(source, functools.partial):
        source = inspect.unwrap(source.func)
    return source if hasattr(source, "__code__") else type(source).__call__


def _struct(func: Callable[..., Any], named: list[_Parameter], hints: dict[str, Any]) -> type[msgspec.Struct]:
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
    """A default that no call can change for the next one."""
    mutable = isinstance(value, (list, dict, set, bytearray)) and len(value) > 0  # msgspec itself copies empty ones
    if mutable or (isinstance(value, msgspec.Struct) and not value.__struct_config__.frozen):
        import copy  # late: few signatures need it

        return msgspec.field(default_factory=lambda: copy.deepcopy(value))
    return value


def _taken(func: Callable[..., Any], parameters: Iterable[_Parameter]) -> set[str]:
    """Names that can't be passed on by `**`, because they are already filled by position: the context, `self`."""
    code = getattr(_source(func), "__code__", None)
    own = code.co_varnames[code.co_posonlyargcount : code.co_argcount] if code else ()
    return {*own} | {p.name for p in parameters if p.kind is _Parameter.POSITIONAL_OR_KEYWORD}
