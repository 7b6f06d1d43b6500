"""How authors declare operations: typed functions with a decorator of a `Service`. Checks declarations, runs nothing.

files = Service("files")

@files.query(errors=[FileNotFound])
async def read(ctx: Context, path: str, limit: int = 65536) -> FileContent:
    '''Read one file under the workspace root.'''
"""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import (
    Any,
    Final,
    Literal,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    final,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from msgspec import UNSET

from ...errors.codes import DialectChoice
from ...errors.details import hidden_facts
from ...errors.exceptions import OperationError
from .access import AccessRule
from .json_types import require_json_type
from .params import build_input
from .spec import HandlerMode, OperationKind, OperationSpec, Timeout, Visibility, output_check

Handler = TypeVar("Handler", bound=Callable[..., Any])

Lifespan: TypeAlias = Callable[[], AbstractAsyncContextManager[Any]]
"""Called once, before the first request is read; what it yields is the `ctx.state` of the service's handlers."""

_NAME = re.compile(r"[$A-Za-z_][\w.$-]*(?:/[\w.$-]+)*", re.ASCII)
INITIALIZE: Final = "$initialize"
"""The name of the internal operation that `Service.initialize` declares."""

_LIST_RULE = 'must be a list of strings, such as ["files:read"], not one string'
_NAME_RULE = "a name consists of letters, digits and _ . $ -, with a single / between its parts, such as files/read"


class DeclarationError(Exception):
    """A service is declared wrongly. The message is one line: the operation, what is wrong, and what to write instead."""


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

    A caller needs all of `scopes`, and one of `any_scope`. `visibility="internal"` hides the operation from the wire.
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
    limit: int
    description: str


@final
class Service:
    """A namespace of operations: those of `Service("files")` are called `files/<function>`, of `Service("")` `<function>`.

    `uses` names the operations, of any service in the daemon, that its handlers may call with `ctx.call`. These calls
    are checked against `authority`, the service's own scopes, never against the caller's. `credentials` names those that
    its handlers find in `ctx.credentials`. `dialect` is what its clients speak, unless the setting says otherwise:
    docs/dialects.md. `capabilities` is added to what `initialize` answers with, which LSP's clients
    read before they use a method (`{"hoverProvider": True}`). `version` is told to clients as that of the server, where one
    service alone is hosted. `lifespan()` is entered before the first request is read and left when the last one is
    answered; its value is the `ctx.state` of the service's handlers.

    Its constructor and its decorators raise `DeclarationError` for a wrong declaration.
    """

    def __init__(  # noqa: PLR0913 - what a service declares
        self,
        namespace: str = "",
        *,
        description: str = "",
        version: str = "",
        dialect: DialectChoice | None = None,
        uses: Sequence[str] = (),
        authority: Sequence[str] = (),
        credentials: Sequence[str] = (),
        capabilities: Mapping[str, Any] | None = None,  # Any: JSON
        lifespan: Lifespan | None = None,
    ) -> None:
        if namespace and not _NAME.fullmatch(namespace):
            raise DeclarationError(f"service {namespace!r}: {_NAME_RULE}")
        if dialect is not None and dialect not in get_args(DialectChoice):
            raise DeclarationError(
                f"service {namespace!r}: dialect must be one of {', '.join(get_args(DialectChoice))}, not {dialect!r}"
            )
        for what, names in (("uses", uses), ("authority", authority), ("credentials", credentials)):
            if isinstance(names, str):
                raise DeclarationError(f"service {namespace!r}: {what} {_LIST_RULE}")
        self.namespace = namespace
        self.description = description
        self.version = version
        self.dialect = dialect
        self.uses = frozenset(name.removeprefix("/") for name in uses)
        self.authority = frozenset(authority)
        self.credentials = frozenset(credentials)
        self.capabilities = dict(capabilities or {})
        self.lifespan = lifespan
        self.operations: list[OperationSpec] = []

    @overload
    def query(self, handler: Handler, /) -> Handler: ...
    @overload
    def query(self, method: str = "", /, **options: Unpack[OperationOptions]) -> Callable[[Handler], Handler]: ...
    def query(self, given: Any = "", /, **options: Unpack[OperationOptions]) -> Any:
        """Declare an operation that only reads and may be repeated. See `OperationOptions`.

        Returns the function unchanged.
        """
        return self._declare("query", given, options)

    @overload
    def mutation(self, handler: Handler, /) -> Handler: ...
    @overload
    def mutation(self, method: str = "", /, **options: Unpack[OperationOptions]) -> Callable[[Handler], Handler]: ...
    def mutation(self, given: Any = "", /, **options: Unpack[OperationOptions]) -> Any:
        """Declare an operation that changes something. See `OperationOptions`. Returns the function unchanged."""
        return self._declare("mutation", given, options)

    @overload
    def subscription(self, handler: Handler, /) -> Handler: ...
    @overload
    def subscription(
        self, method: str = "", /, **options: Unpack[OperationOptions]
    ) -> Callable[[Handler], Handler]: ...
    def subscription(self, given: Any = "", /, **options: Unpack[OperationOptions]) -> Any:
        """Declare an operation that sends events: an asynchronous generator, annotated `AsyncIterator[T]`.

        See `OperationOptions`; without `timeout` it has no deadline. Returns the function unchanged.
        """
        return self._declare("subscription", given, options)

    @overload
    def notification(self, handler: Handler, /) -> Handler: ...
    @overload
    def notification(
        self, method: str = "", /, **options: Unpack[OperationOptions]
    ) -> Callable[[Handler], Handler]: ...
    def notification(self, given: Any = "", /, **options: Unpack[OperationOptions]) -> Any:
        """Declare what takes a notification. It returns nothing; sent as a request, it is answered with null.

        All notifications of one client are handled one at a time, in the order of arrival, and a request that comes behind
        those of plain `def` handlers waits for them. See `OperationOptions`; `serial`, `keyed` and `concurrency` don't
        apply. Returns the function unchanged.
        """
        return self._declare("notification", given, options)

    @overload
    def initialize(self, handler: Handler, /) -> Handler: ...
    @overload
    def initialize(self, /, *, errors: Sequence[type[OperationError]] = ()) -> Callable[[Handler], Handler]: ...
    def initialize(self, handler: Any = None, /, *, errors: Sequence[type[OperationError]] = ()) -> Any:
        """Declare what runs when a client says hello, before it is answered. Returns the function unchanged.

        Its params are those of the client's `initialize`; `ctx.client` says the same in brief. It may return an object (a
        dict or a struct), whose members are added to the capabilities that the client is told. What it raises refuses the
        client, with one of the `errors` or as an internal error.
        """
        name = f"{self.namespace}/{INITIALIZE}".lstrip("/")
        declare = self._declare("query", name, {"visibility": "internal", "errors": errors})
        return declare if handler is None else declare(handler)

    def _declare(self, kind: OperationKind, given: object, options: OperationOptions) -> Any:
        def register(func: Handler) -> Handler:
            verb = options.get("name") or func.__name__
            name = method or (f"{self.namespace}/{verb}" if self.namespace else verb)
            try:
                if method and "name" in options:
                    raise TypeError("it is named twice: keep the method or name=, not both")
                self.operations.append(self._specify(name, kind, func, options))
            except (TypeError, ValueError, NameError) as exc:
                raise DeclarationError(f"operation {name}: {exc}") from exc
            return func

        method = given if isinstance(given, str) else ""
        if given is method:
            return register
        if callable(given) and not options:
            return register(given)
        raise DeclarationError(
            f"service {self.namespace!r}: @service.{kind} takes a method (a string) and options by keyword, not {given!r}"
        )

    def _specify(
        self, name: str, kind: OperationKind, func: Callable[..., Any], options: OperationOptions
    ) -> OperationSpec:
        if not _NAME.fullmatch(name):
            raise ValueError(_NAME_RULE)
        mode = _mode_of(kind, func, options)
        _check_options(options, mode)
        model = build_input(func)
        require_json_type(model.type, "a param")
        returns = _returns(func, kind)
        require_json_type(returns, "an event" if kind == "subscription" else "the result")
        return OperationSpec(
            name=name,
            kind=kind,
            mode=mode,
            input=model,
            invoke=model.invoker(func),
            returns=returns,
            output=output_check(returns),
            errors=_check_errors(options.get("errors", ())),
            description=options.get("description") or _description(func),
            timeout=options.get("timeout", None if kind == "subscription" else UNSET),
            concurrency_group=_concurrency_group(options, model.names, kind),
            concurrency_limit=options.get("concurrency", 1),
            visibility=options.get("visibility", "external"),
            access=AccessRule(frozenset(options.get("scopes", ())), frozenset(options.get("any_scope", ()))),
            namespace=self.namespace,
            limit=options.get("limit"),
            uses=self.uses,
            authority=self.authority,
        )


def _mode_of(kind: OperationKind, func: Callable[..., Any], options: OperationOptions) -> HandlerMode:
    inline = options.get("inline", False)
    generator = inspect.isasyncgenfunction(func)
    if generator != (kind == "subscription") or inspect.isgeneratorfunction(func):
        raise TypeError(f"a {kind} must be {_HANDLERS[kind]}")
    coroutine = inspect.iscoroutinefunction(func)
    if inline and (coroutine or generator):
        raise TypeError("inline=True is for a plain `def`; an `async def` runs on the event loop anyway, so remove it")
    if generator:
        return "stream"
    if coroutine:
        return "async"
    return "inline" if inline else "thread"


def _check_options(options: OperationOptions, mode: HandlerMode) -> None:
    """Checks the options' names too: a misspelt `scopes` would leave an operation open."""
    known = OperationOptions.__annotations__
    unknown = options.keys() - known.keys()
    if unknown:
        raise TypeError(f"unknown option {', '.join(sorted(unknown))}; the options are {', '.join(known)}")
    for name in ("scopes", "any_scope"):
        if isinstance(options.get(name), str):
            raise TypeError(f"{name} {_LIST_RULE}")
    if options.get("visibility", "external") not in get_args(Visibility):
        raise ValueError(f"visibility must be one of {', '.join(get_args(Visibility))}")
    for number in (options.get("limit"), options.get("concurrency")):
        if number is not None and not (isinstance(number, int) and number > 0):
            raise ValueError("limit and concurrency must be a number of calls, 1 or more")
    timeout = options.get("timeout")
    if timeout is not None and timeout is not UNSET:
        if not (isinstance(timeout, int | float) and timeout > 0):
            raise ValueError("timeout must be a number of seconds above 0, or None for no deadline")
        if mode == "inline":
            raise ValueError("timeout and inline exclude each other, since nothing can interrupt an inline handler")


_HANDLERS: dict[OperationKind, str] = {
    "query": "a function without `yield`, since it has one result; for a stream of events write @service.subscription()",
    "mutation": "a function without `yield`, since it has one result; for a stream of events write @service.subscription()",
    "subscription": "an asynchronous generator: write `async def` with `yield`, annotated AsyncIterator[T]",
    "notification": "a function without `yield`; it returns nothing",
}


def _returns(func: Callable[..., Any], kind: OperationKind) -> Any:
    """The type of the result, or of one event; Any without an annotation."""
    returns = get_type_hints(func, include_extras=True).get("return", Any)
    if kind == "notification" and returns not in (Any, None, type(None)):
        raise TypeError("a notification has no result; annotate the handler `-> None`")
    if kind != "subscription" or returns is Any:
        return returns
    if get_origin(returns) not in (AsyncIterator, AsyncGenerator, AsyncIterable):
        raise TypeError("a subscription must be annotated AsyncIterator[T], where T is the type of its events")
    return get_args(returns)[0]


def _concurrency_group(
    options: OperationOptions, names: tuple[str, ...], kind: OperationKind
) -> Literal[True] | str | None:
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


def _check_errors(errors: Sequence[type[OperationError]]) -> tuple[type[OperationError], ...]:
    if isinstance(errors, type):
        raise TypeError(f"errors must be a list; write errors=[{errors.__name__}]")
    codes: set[str] = set()
    for cls in errors:
        if not (isinstance(cls, type) and issubclass(cls, OperationError) and hasattr(cls, "definition")):
            raise TypeError(f"errors must hold subclasses of OperationError that have a code, not {cls!r}")
        if cls.definition.code in codes:
            raise ValueError(f"errors holds the code {cls.definition.code} twice; give each class a code of its own")
        codes.add(cls.definition.code)
        if hidden := hidden_facts(cls.definition.details):
            raise ValueError(
                f"{cls.__name__}.{hidden[0]}: a text of this name is always redacted; rename it,"
                " or make it a closed list (Literal or Enum)"
            )
    return tuple(errors)


def _description(func: Callable[..., Any]) -> str:
    doc = inspect.getdoc(func) or ""
    return doc.split("\n\n")[0].replace("\n", " ").strip()
