"""The options of one declaration, and whether they can work. Knows nothing of params and results, and runs nothing.

What is wrong is a `TypeError` or a `ValueError`; its message is one line without the operation's name.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Literal, TypedDict, get_args

from msgspec import UNSET

from ...errors.details import hidden_facts
from ...errors.exceptions import OperationError
from ...errors.nearest import nearest_hint
from .access import AccessRule
from .json_types import require_defaults, require_json_members
from .spec import HandlerMode, OperationKind, Timeout, Visibility

_NAME: Final = re.compile(r"[$A-Za-z_][\w.$-]*(?:/[\w.$-]+)*", re.ASCII)
_SWITCHES: Final = ("inline", "serial", "etag", "public")
_COUNTS: Final = ("limit", "concurrency")
_TEXTS: Final = ("name", "description", "keyed")


class OperationOptions(TypedDict, total=False):
    """What the decorators of `Service` take. All of it is optional, and so are the parentheses.

    `name` replaces the function's name, `description` the first paragraph of its docstring. A first positional argument is
    the whole method, outside the service's namespace: `@service.query("textDocument/hover")`. `errors` are the typed
    errors that the handler may raise, and no others. `timeout` is in seconds, None for no deadline; without it the
    daemon's setting `request-timeout` applies.

    A plain `def` runs in a worker thread. `inline=True` promises that it never blocks, and runs it on the event loop.
    `serial=True` runs one call of the operation at a time, in the order of arrival; `keyed="param"` runs one call at a
    time for each value of that param. `concurrency` lets so many calls run at a time instead of one; others wait, in
    order, and can be cancelled. `limit` is how many calls may be in the daemon, running or waiting; one more is
    refused with OVERLOADED.

    `options` are for the protocol that clients speak, such as LSP's trigger characters: a struct of `discreet.lsp`, or a dict.

    `etag=True` gives the results of a query an `ETag` by HTTP, so that a caller who has a result already is not sent it again.

    A caller needs all of `scopes`, and one of `any_scope`. Where callers are told apart, those by HTTP need credentials also
    without scopes; `public=True` lets anybody call it by `--http-operations`. `visibility="internal"` hides the operation from
    the wire.
    """

    name: str
    errors: Sequence[type[OperationError]]
    timeout: Timeout
    inline: bool
    serial: bool
    keyed: str
    concurrency: int
    visibility: Visibility
    scopes: Sequence[str]
    any_scope: Sequence[str]
    public: bool
    limit: int
    description: str
    etag: bool
    options: object


def check_name(name: object) -> None:
    """Raises for what can't be the name of an operation or a namespace."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            "a name consists of letters, digits and _ . $ -, with a single / between its parts, such as files/read"
        )


def check_text(what: str, text: object) -> None:
    """Raises for what is no text that JSON can hold."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a string, not {type(text).__name__}")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError(f"{what} must be Unicode text, without lone surrogates")


def check_lifespan(lifespan: object) -> None:
    """Raises `TypeError` for what is no function without params that returns an asynchronous context manager."""
    if lifespan is None:
        return
    if not callable(lifespan) or isinstance(lifespan, AbstractAsyncContextManager):
        given = "the manager itself" if isinstance(lifespan, AbstractAsyncContextManager) else type(lifespan).__name__
        raise TypeError(f"lifespan must be a function under @asynccontextmanager, not {given}")
    inner, name = inspect.unwrap(lifespan), getattr(lifespan, "__name__", type(lifespan).__name__)
    if inspect.iscoroutinefunction(inner):
        raise TypeError(
            f"the lifespan {name} has no `yield`: what stands before it is run at the start, the rest at the end"
        )
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(lifespan):
        raise TypeError(
            f"the lifespan {name} must be an `async def` with `yield` under @asynccontextmanager of contextlib"
        )
    try:
        inspect.signature(lifespan).bind()
    except TypeError:
        raise TypeError(f"the lifespan {name} takes no params") from None
    except ValueError:  # a class of C, which says nothing of its params
        return


def check_names(what: str, names: object, example: str) -> None:
    """Raises for what is no list of names. A name is not empty, and has no blanks and no control characters."""
    if isinstance(names, str | bytes | Mapping) or not isinstance(names, Collection):
        raise TypeError(f"{what} must be a list of strings, such as [{example!r}], not {type(names).__name__}")
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{what} must hold strings, such as {example!r}, not {type(name).__name__}")
        if not name or not name.isprintable() or " " in name:
            raise ValueError(f"{what} holds {name!r}; a name is not empty, and has no blanks and no control characters")


def check_options(options: OperationOptions, *more: str) -> None:
    """Checks the options' names too: a misspelt `scopes` would leave an operation open. `more` are those beside them."""
    known = [*more, *OperationOptions.__annotations__]
    unknown = sorted(options.keys() - set(known))
    if unknown:
        hint = nearest_hint(unknown[0], known)
        raise TypeError(f"unknown option {', '.join(unknown)}{hint}; the options are {', '.join(known)}")
    given: Mapping[str, object] = options
    for text in given.keys() & _TEXTS:
        check_text(text, given[text])
    for names in given.keys() & {"scopes", "any_scope"}:
        check_names(names, given[names], "files:read")
    for switch in given.keys() & _SWITCHES:
        if not isinstance(given[switch], bool):
            raise TypeError(f"{switch} must be True or False")
    for count in given.keys() & _COUNTS:
        number = given[count]
        if not (isinstance(number, int) and not isinstance(number, bool) and number > 0):
            raise ValueError(f"{count} must be a number of calls, 1 or more")
    if options.get("visibility", "external") not in get_args(Visibility):
        raise ValueError(f"visibility must be one of {', '.join(get_args(Visibility))}")
    timeout = options.get("timeout")
    if timeout is not None and timeout is not UNSET:
        if isinstance(timeout, bool) or not (isinstance(timeout, int | float) and 0 < timeout < math.inf):
            raise ValueError("timeout must be a number of seconds above 0, or None for no deadline")
        if options.get("inline"):
            raise ValueError("timeout and inline exclude each other, since nothing can interrupt an inline handler")


def access_rule(options: OperationOptions) -> AccessRule:
    """Who may call the operation. Raises `ValueError` for scopes of one that is public."""
    rule = AccessRule(
        frozenset(options.get("scopes", ())), frozenset(options.get("any_scope", ())), options.get("public", False)
    )
    if rule.public and not rule.open:
        raise ValueError("public lets anybody call it, and scopes do not; remove one of both")
    return rule


def description_of(func: Callable[..., Any]) -> str:
    """The first paragraph of its docstring, in one line."""
    doc = inspect.getdoc(func) or ""
    return doc.split("\n\n")[0].replace("\n", " ").strip()


def name_of(func: Callable[..., Any], options: OperationOptions) -> str:
    """The operation's name without its namespace. Raises `TypeError` for what is no function."""
    if isinstance(func, type) or not callable(func):
        found = f"the class {func.__name__}" if isinstance(func, type) else type(func).__name__
        raise TypeError(f"a handler must be a function, not {found}")
    if "name" in options:
        return options["name"]
    name = getattr(func, "__name__", None)
    if not isinstance(name, str):
        raise TypeError(f'a {type(func).__name__} has no name of its own; write name="…"')
    return name


def check_kind(kind: OperationKind, options: OperationOptions) -> None:
    """Raises for an option that means nothing for an operation of this kind."""
    if options.get("etag") and kind != "query":
        raise ValueError(f"etag is for queries, which can be repeated, and this is a {kind}; remove it")


def mode_of(kind: OperationKind, func: Callable[..., Any], options: OperationOptions) -> HandlerMode:
    """How the handler runs. Raises `TypeError` for a handler of the wrong kind."""
    inline = options.get("inline", False)
    code = _with_code(func)
    generator = inspect.isasyncgenfunction(code)
    if generator != (kind == "subscription") or inspect.isgeneratorfunction(code):
        raise TypeError(f"a {kind} must be {_HANDLERS[kind]}")
    coroutine = inspect.iscoroutinefunction(code)
    if inline and (coroutine or generator):
        raise TypeError("inline=True is for a plain `def`; an `async def` runs on the event loop anyway, so remove it")
    if generator:
        return "stream"
    if coroutine:
        return "async"
    return "inline" if inline else "thread"


_HANDLERS: Final[dict[OperationKind, str]] = {
    "query": "a function without `yield`, since it has one result; for a stream of events write @service.subscription()",
    "mutation": "a function without `yield`, since it has one result; for a stream of events write @service.subscription()",
    "subscription": "an asynchronous generator: write `async def` with `yield`, annotated AsyncIterator[T]",
    "notification": "a function without `yield`; it returns nothing",
}


def _with_code(func: Any) -> Any:  # Any: whatever can be called
    """The function that a partial call, a static method or an object with `__call__` runs."""
    while isinstance(func, functools.partial | staticmethod):
        func = func.func if isinstance(func, functools.partial) else func.__func__
    return func if inspect.isroutine(func) else type(func).__call__


def concurrency_group(
    options: OperationOptions, names: tuple[str, ...], kind: OperationKind
) -> Literal[True] | str | None:
    """Which calls exclude each other, as `OperationSpec.concurrency_group` says it. `names` are those of the params."""
    keyed = options.get("keyed")
    if kind == "notification" and options.keys() & {"serial", "keyed", "concurrency"}:
        raise ValueError("notifications run one at a time in any case; remove serial, keyed or concurrency")
    if options.get("serial"):
        if keyed is not None or "concurrency" in options:
            raise ValueError("serial excludes keyed and concurrency; keep one of them")
        return True
    if keyed is not None and keyed not in names:
        raise ValueError(f"keyed={keyed!r} names no param of the handler; its params are: {', '.join(names) or 'none'}")
    return True if keyed is None and "concurrency" in options else keyed


def declared_errors(options: OperationOptions) -> tuple[type[OperationError], ...]:
    """The error classes. Raises for one that can't be declared, or whose facts JSON can't hold or nobody would see."""
    errors = options.get("errors", ())
    if isinstance(errors, type):
        raise TypeError(f"errors must be a list; write errors=[{errors.__name__}]")
    if isinstance(errors, str | bytes | Mapping) or not isinstance(errors, Collection):
        raise TypeError(f"errors must be a list of subclasses of OperationError, not {type(errors).__name__}")
    codes: set[str] = set()
    classes = tuple(errors)
    for cls in classes:
        if not (isinstance(cls, type) and issubclass(cls, OperationError) and hasattr(cls, "definition")):
            raise TypeError(f"errors must hold subclasses of OperationError that have a code, not {cls!r}")
        if classes.count(cls) > 1:
            raise ValueError(f"errors lists {cls.__name__} twice; remove one")
        if cls.definition.code in codes:
            raise ValueError(f"errors holds the code {cls.definition.code} twice; give each class a code of its own")
        codes.add(cls.definition.code)
        require_json_members(cls.definition.details, f"{cls.__name__}.")
        require_defaults(cls.definition.details, f"{cls.__name__}.")
        if hidden := hidden_facts(cls.definition.details):
            raise ValueError(
                f"{cls.__name__}.{hidden[0]}: a text of this name is always redacted; rename it,"
                " or make it a closed list (Literal or Enum)"
            )
    return classes
