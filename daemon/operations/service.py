"""How users write operations: typed functions, decorated.

files = Service("files")

@files.query(errors=[FileNotFound])
async def read(ctx: Context, path: str, limit: int = 65536) -> FileContent:
    '''Read one file under the workspace root.'''
"""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Literal, ParamSpec, TypedDict, TypeVar, Unpack, final, get_args, get_origin, get_type_hints

from ...errors.exceptions import OperationError
from .access import AccessRule
from .json_types import refuse_foreign
from .params import build_input
from .spec import DEFAULT_TIMEOUT, DefaultTimeout, Kind, Mode, OperationSpec, Timeout, Visibility, output_check

P = ParamSpec("P")
R = TypeVar("R")

_NAME = re.compile(r"[$A-Za-z_][\w.$-]*(?:/[\w.$-]+)*", re.ASCII)
_LIST_RULE = "is a list of strings, not one string"
_NAME_RULE = "a name is letters, digits and _ . $ - with / between its parts"


class DeclarationError(Exception):
    """A service is declared wrongly; the message is one line that names the operation and what to change."""


class Options(TypedDict, total=False):
    """What a decorator takes, all of it optional.

    `name` replaces the function's name. `errors` are the only typed errors that the handler may raise. `timeout` is
    in seconds, None for no deadline; without it the daemon's setting holds. A plain `def` runs in a worker thread;
    `inline=True` promises that it never blocks and runs it on the event loop. `serial=True` runs the operation one
    at a time, in order; `keyed="param"` one at a time per value of that param. `visibility="internal"` hides it from
    the wire. `scopes` are needed all, of `any_scope` one is enough. `limit` is how many calls may be in the daemon at
    once; one more is refused with OVERLOADED. `description` replaces the first paragraph of the docstring.
    `at_once=True`, for inline handlers, runs a call the moment it is read, before what waits and also when the daemon
    has been told to end.
    """

    name: str
    errors: Sequence[type[OperationError]]
    timeout: Timeout
    inline: bool
    serial: bool
    keyed: str
    visibility: Visibility
    scopes: Sequence[str]
    any_scope: Sequence[str]
    limit: int
    description: str
    at_once: bool


@final
class Service:
    """A namespace of operations. `Service("files")` names its operations `files/<function>`, `Service("")` just
    `<function>`.

    `uses` names the operations of this or other services that its handlers may call through their context; those
    calls are checked against `authority`, the service's own scopes, never against the caller's. `capabilities` names
    the credentials that its handlers find in `ctx.capabilities`. `announces` is merged into the capabilities that
    `initialize` answers with: what a client of LSP must hear before it uses a method (`{"hoverProvider": True}`).

    Raises `DeclarationError` where a service or one of its operations is declared wrongly.
    """

    def __init__(
        self,
        namespace: str,
        *,
        description: str = "",
        uses: Sequence[str] = (),
        authority: Sequence[str] = (),
        capabilities: Sequence[str] = (),
        announces: Mapping[str, Any] | None = None,  # Any: JSON
    ) -> None:
        if namespace and not _NAME.fullmatch(namespace):
            raise DeclarationError(f"service {namespace!r}: {_NAME_RULE}")
        for what, names in (("uses", uses), ("authority", authority), ("capabilities", capabilities)):
            if isinstance(names, str):
                raise DeclarationError(f"service {namespace!r}: {what} {_LIST_RULE}")
        self.namespace = namespace
        self.description = description
        self.uses = frozenset(name.removeprefix("/") for name in uses)
        self.authority = frozenset(authority)
        self.capabilities = frozenset(capabilities)
        self.announces = dict(announces or {})
        self.operations: list[OperationSpec] = []

    def query(self, *misplaced: object, **options: Unpack[Options]) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Declare an operation that only reads and may be repeated. Returns the function unchanged. See `Options`."""
        return self._declare("query", misplaced, options)

    def mutation(self, *misplaced: object, **options: Unpack[Options]) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Declare an operation that changes something. Returns the function unchanged. See `Options`."""
        return self._declare("mutation", misplaced, options)

    def subscription(
        self, *misplaced: object, **options: Unpack[Options]
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Declare an operation that sends events: an asynchronous generator, annotated `AsyncIterator[T]`.

        Returns the function unchanged. See `Options`; without `timeout` it has no deadline.
        """
        return self._declare("subscription", misplaced, options)

    def _declare(
        self, kind: Kind, misplaced: tuple[object, ...], options: Options
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        if misplaced:
            raise DeclarationError(f"service {self.namespace!r}: write @service.{kind}(), with its parentheses")

        def register(func: Callable[P, R]) -> Callable[P, R]:
            verb = options.get("name") or func.__name__
            name = f"{self.namespace}/{verb}" if self.namespace else verb
            try:
                self.operations.append(self._specify(name, kind, func, options))
            except (TypeError, ValueError, NameError) as exc:
                raise DeclarationError(f"operation {name}: {exc}") from exc
            return func

        return register

    def _specify(self, name: str, kind: Kind, func: Callable[..., Any], options: Options) -> OperationSpec:
        if not _NAME.fullmatch(name):
            raise ValueError(_NAME_RULE)
        mode = _mode(kind, func, options)
        _check(options, mode)
        model = build_input(func)
        refuse_foreign(model.type)
        returns = _returns(func, kind)
        refuse_foreign(returns)
        return OperationSpec(
            name=name,
            kind=kind,
            mode=mode,
            input=model,
            invoke=model.invoker(func),
            returns=returns,
            output=output_check(returns),
            errors=_checked(options.get("errors", ())),
            description=options.get("description") or _description(func),
            timeout=options.get("timeout", None if kind == "subscription" else DEFAULT_TIMEOUT),
            lane=_lane(options, model.names),
            visibility=options.get("visibility", "external"),
            access=AccessRule(frozenset(options.get("scopes", ())), frozenset(options.get("any_scope", ()))),
            limit=options.get("limit"),
            uses=self.uses,
            authority=self.authority,
            at_once=options.get("at_once", False),
        )


def _mode(kind: Kind, func: Callable[..., Any], options: Options) -> Mode:
    inline = options.get("inline", False)
    generator = inspect.isasyncgenfunction(func)
    if generator != (kind == "subscription") or inspect.isgeneratorfunction(func):
        raise TypeError(f"a {kind} is {_HANDLERS[kind]}")
    coroutine = inspect.iscoroutinefunction(func)
    if inline and (coroutine or generator):
        raise TypeError("inline=True is for plain functions; a coroutine runs on the loop anyway")
    if options.get("at_once") and not inline:
        raise TypeError("at_once=True needs inline=True")
    if generator:
        return "stream"
    if coroutine:
        return "async"
    return "inline" if inline else "thread"


def _check(options: Options, mode: Mode) -> None:
    """What type checkers say of the options, and what they can't: an option that nobody reads protects nobody."""
    unknown = options.keys() - Options.__annotations__.keys()
    if unknown:
        raise TypeError(f"there is no option {', '.join(sorted(unknown))}")
    for name in ("scopes", "any_scope"):
        if isinstance(options.get(name), str):
            raise TypeError(f"{name} {_LIST_RULE}")
    if options.get("visibility", "external") not in get_args(Visibility):
        raise ValueError(f"visibility is one of {', '.join(get_args(Visibility))}")
    limit = options.get("limit")
    if limit is not None and not (isinstance(limit, int) and limit > 0):
        raise ValueError("limit is a number of calls, 1 or more")
    timeout = options.get("timeout")
    if timeout is not None and not isinstance(timeout, DefaultTimeout):
        if not (isinstance(timeout, int | float) and timeout > 0):
            raise ValueError("timeout is a number of seconds above 0, or None")
        if mode == "inline":
            raise ValueError("an inline handler has no deadline: nothing could interrupt it")


_HANDLERS: dict[Kind, str] = {
    "query": "a function or coroutine with one result, no generator",
    "mutation": "a function or coroutine with one result, no generator",
    "subscription": "an asynchronous generator (`async def` with `yield`)",
}


def _returns(func: Callable[..., Any], kind: Kind) -> Any:
    """The type of the result, or of the events. A missing annotation promises nothing."""
    returns = get_type_hints(func, include_extras=True).get("return", Any)
    if kind != "subscription" or returns is Any:
        return returns
    if get_origin(returns) not in (AsyncIterator, AsyncGenerator, AsyncIterable):
        raise TypeError("a subscription returns AsyncIterator[T], with the type of its events")
    return get_args(returns)[0]


def _lane(options: Options, names: tuple[str, ...]) -> Literal[True] | str | None:
    keyed = options.get("keyed")
    if options.get("serial"):
        if keyed is not None:
            raise ValueError("serial and keyed exclude each other")
        return True
    if keyed is not None and keyed not in names:
        raise ValueError(f"keyed={keyed!r} names no param of the handler")
    return keyed


def _checked(errors: Sequence[type[OperationError]]) -> tuple[type[OperationError], ...]:
    if isinstance(errors, type):
        raise TypeError(f"errors=[…] takes a list, such as [{errors.__name__}]")
    codes: set[str] = set()
    for cls in errors:
        if not (isinstance(cls, type) and issubclass(cls, OperationError) and hasattr(cls, "definition")):
            raise TypeError(f"errors=[…] takes subclasses of OperationError with a code, not {cls!r}")
        if cls.definition.code in codes:
            raise ValueError(f"error code {cls.definition.code} is declared twice")
        codes.add(cls.definition.code)
    return tuple(errors)


def _description(func: Callable[..., Any]) -> str:
    doc = inspect.getdoc(func) or ""
    return doc.split("\n\n")[0].replace("\n", " ").strip()
