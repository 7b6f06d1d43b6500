"""One operation as data: its name, kind, contract, and how its handler is run. Runs nothing."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Generic, Literal, TypeAlias, TypedDict, TypeVar, get_args, get_origin

import msgspec
from msgspec import UNSET, UnsetType

from ...errors.decoders import build_decoder, json_encoder, type_info
from ...errors.exceptions import OperationError, hidden_facts
from ...errors.failures import Failure
from ...errors.nearest import nearest_hint
from ...lazy import anyio
from ..declarations import Offer
from .access import AccessRule
from .json_types import require_defaults, require_json_members
from .params import Arguments, InputModel

# The options of one declaration, and whether they can work. Knows nothing of params and results, and runs nothing.
#
# What is wrong is a `TypeError` or a `ValueError`; its message is one line without the operation's name.


_NAME: Final = re.compile(r"[$A-Za-z_][\w.$-]*(?:/[\w.$-]+)*", re.ASCII)
_SWITCHES: Final = ("inline", "serial", "etag", "public", "idempotent")
_COUNTS: Final = ("limit", "concurrency")
_TEXTS: Final = ("name", "description", "keyed")


class OperationOptions(TypedDict, total=False):
    """The options of the decorators of `Service`. All are optional, and so are the parentheses.

    A first positional argument is the whole method, outside the service's namespace: `@service.query("textDocument/hover")`.
    `name` replaces the function's name, `description` the first paragraph of its docstring. `errors` are the typed errors that
    the handler may raise, and no others. `timeout` is in seconds, None for no deadline; the default is the daemon's setting
    `request-timeout`.

    A plain `def` runs in a worker thread. `inline=True` promises that it never blocks, and runs it on the event loop.
    `serial=True` runs one call of the operation at a time, in the order of arrival; `keyed="param"` runs one call at a time
    for each value of that param. `concurrency` allows so many calls at a time instead of one. The others wait in order, and
    can be cancelled. `limit` is how many calls may run or wait; one more is refused with OVERLOADED.

    A caller needs all of `scopes`, and one of `any_scope`. By HTTP, where the daemon has an identity provider, a caller needs
    credentials even without scopes; `public=True` lifts that for `--http-operations`. `visibility="internal"` hides the
    operation from the wire.

    `task` lets calls run as tasks, whose result clients of MCP ask for later: "optional" where the client can, "required" always.
    A task whose process has died is run again if the operation is a query, or `idempotent=True` says that running it twice does
    no more than running it once. Any other has failed.

    `options` are for the clients' protocol, such as LSP's trigger characters: a struct of `discreet.lsp`, or a dict.
    `etag=True` gives results of a query an `ETag` by HTTP; a caller that sends it back gets 304 while the result is the same.
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
    idempotent: bool
    task: TaskUse
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
        theirs = "" if hint else f'; what a protocol adds stands in options={{"{unknown[0]}": …}}'
        raise TypeError(f"unknown option {', '.join(unknown)}{hint}; the options are {', '.join(known)}{theirs}")
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
    for choice, choices in (("visibility", get_args(Visibility)), ("task", get_args(TaskUse))):
        if choice in given and given[choice] not in choices:
            raise ValueError(f"{choice} must be one of {', '.join(choices)}")
    _check_timeout(options)


def _check_timeout(options: OperationOptions) -> None:
    timeout = options.get("timeout")
    if timeout is not None and timeout is not UNSET:
        if isinstance(timeout, bool) or not (isinstance(timeout, int | float) and 0 < timeout < math.inf):
            raise ValueError("timeout must be a number of seconds above 0, or None for no deadline")
        if options.get("inline"):
            raise ValueError("timeout and inline exclude each other, since nothing can interrupt an inline handler")


def access_rule(options: OperationOptions) -> AccessRule:
    """Return the rule of who may call the operation. Raises `ValueError` for scopes of a public one."""
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
    code = with_code(func)
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
    "subscription": "a generator: write `async def` with `yield`, annotated AsyncIterator[T], or `def` and Iterator[T]",
    "notification": "a function without `yield`; it returns nothing",
}


def in_worker_threads(func: Any) -> Any:  # Any: whatever can be called
    """An asynchronous generator that runs each step of this generator in a worker thread; what is no generator, as it is.

    A cancellation waits for the step that runs, and closes the generator.
    """
    if not inspect.isgeneratorfunction(with_code(func)):
        return func

    @functools.wraps(func)
    async def events(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        generator = func(*args, **kwargs)
        try:
            while (value := await anyio.to_thread.run_sync(_next, generator)) is not _END:
                yield value
        finally:
            with anyio.CancelScope(shield=True):  # at most as long as the author's own `finally`
                await anyio.to_thread.run_sync(generator.close)

    return events


_END: Final = object()


def _next(generator: Any) -> Any:  # Any: values of the app
    try:
        return next(generator, _END)
    except GeneratorExit as exc:  # in the generator around this one it would mean that that is closed
        raise RuntimeError("the generator has raised GeneratorExit") from exc


def with_code(func: Any) -> Any:  # Any: whatever can be called
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
    """Return the error classes. Raises for one that can't be declared, or whose facts JSON can't hold or the scrubber hides."""
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


T = TypeVar("T")

OperationKind: TypeAlias = Literal["query", "mutation", "subscription", "notification"]
HandlerMode: TypeAlias = Literal["inline", "async", "thread", "stream", "forward"]
TaskUse: TypeAlias = Literal["optional", "required"]
Visibility: TypeAlias = Literal["external", "internal"]

Immediate: TypeAlias = Literal["never", "unordered", "always"]
Timeout: TypeAlias = float | UnsetType | None
"""Seconds; None for no deadline; UNSET where the daemon's setting `request-timeout` applies."""

_encode = json_encoder()


class Forward(msgspec.Struct, frozen=True):
    """Another operation that a call is meant for: its method, its params as JSON text, where in the call's own params
    these stand, and whether it must be a subscription (None: it may be one).

    `rendering` writes its outcome; `progress_token` is the one that stood beside the params. For a `patient` caller the
    daemon's default deadline does not apply. `name` is that by which the caller knows the operation, where it is another, and
    `logged` the method that the log names, where that is another.
    """

    method: str
    params: msgspec.Raw
    subscribe: bool | None
    prefix: str = "input"
    rendering: Any = None  # Any: a `rpc.envelope.Rendering`, which operations know nothing of
    progress_token: str | int | UnsetType | None = UNSET
    patient: bool = False
    name: str = ""
    logged: str = ""


class ClientGroup(msgspec.Struct, frozen=True):
    """A concurrency group that every client has for itself, and that all operations of this group's name share."""

    name: str


class ServerEvent(msgspec.Struct, Generic[T], frozen=True):
    """An event of a subscription with its number in the log that it comes from, so that clients can resume after it.

    `id` is that number, 0 or more, and rises from event to event. By HTTP it is the event's `id`. `ctx.last_event_id` is the
    number of the last event that the client has.
    """

    value: T
    id: int


class WrongResult(Exception):
    """A handler gave what its annotation or JSON does not allow. The text names types, never the value."""


class OperationSpec(msgspec.Struct, frozen=True, eq=False):
    """One operation, as the registry has it.

    `mode` says how the handler runs: on the event loop without a task (`inline`: it never blocks), as a coroutine
    (`async`), in a worker thread (`thread`), or as an asynchronous generator (`stream`). A `forward` is no handler: it
    returns, as a `Forward`, the operation that the call is meant for. `invoke(ctx, arguments)` calls it with what
    `input.decode` returned. `returns` is the type of the result, or of one event. `output` checks an encoded result against
    that type; it is None where every JSON text is valid.

    `concurrency_group` says which calls exclude each other: None for none, True for all calls of the operation, a
    param's name for those with an equal value of it, a `ClientGroup` for those of one client. At most `concurrency_limit`
    calls of one group run at a time; the others wait. `limit` is how many calls may be in the daemon, running or waiting;
    one more is refused.

    `namespace` is that of the service that declares it. `uses` are the operations that the handler may call, with the scopes
    of `authority`.

    `floats` says whether a result may hold floats: NaN and the infinities are refused.

    `source` is where the handler stands, as `app.py:12`, for its author.

    `offer` is as what clients of one dialect get it, beside or in place of a call. `options` are what a dialect says of it beside
    its types.
    `idempotent` says of a mutation that it may be repeated, `task` that calls may run as tasks. `etag` says that results of a
    query get an `ETag` by HTTP, `numbered` that the events of a subscription are `ServerEvent`.

    Three fields are for operations of the daemon itself. `admits` says why a call with these service parameters is refused;
    it is asked after access, and before the params are read. `immediate` runs an inline handler as soon as its request is
    read, before all that waits: "unordered" except with `--ordered` and while the daemon shuts down, "always" also then.
    `only_waits` marks a handler that does nothing but wait: it does not count towards `max-concurrency`. When the group of
    such a call is full, the call waits while other calls of the group make progress, and is refused when none does.
    """

    name: str
    kind: OperationKind
    mode: HandlerMode
    input: InputModel
    invoke: Callable[[Any, Arguments], Any]
    returns: Any
    output: Callable[[bytes], object] | None
    errors: Sequence[type[OperationError]]
    description: str
    timeout: Timeout = UNSET
    concurrency_group: Literal[True] | str | ClientGroup | None = None
    concurrency_limit: int = 1
    visibility: Visibility = "external"
    access: AccessRule = AccessRule()
    namespace: str = ""
    limit: int | None = None
    uses: frozenset[str] = frozenset()
    authority: frozenset[str] = frozenset()
    immediate: Immediate = "never"
    only_waits: bool = False
    floats: bool = False
    source: str = ""
    offer: Offer | None = None
    options: Any = None  # Any: what the dialect of the client takes
    etag: bool = False
    numbered: bool = False
    idempotent: bool = False
    task: TaskUse | None = None
    admits: Callable[[Mapping[str, str]], Failure | None] | None = None

    @property
    def has_result(self) -> bool:
        """Whether a call has a result other than null."""
        return self.kind != "notification" and self.returns not in (None, type(None))

    def describe_params(self) -> list[str]:
        """The params for people, in the order of the signature: `level: string`, or `limit?: integer` if optional."""
        from msgspec import inspect  # late: only `describeMethods` needs it

        from .type_phrases import describe_for_people, object_members

        node = type_info(self.input.type)
        if not isinstance(node, inspect.StructType):
            return []
        return [
            f"{name}{'' if field.required else '?'}: {describe_for_people(field.type)}"
            for name, field in object_members(node).items()
            if self.input.whole or name in self.input.names
        ]

    def describe_result(self) -> str:
        """The result's type for people."""

        from .type_phrases import describe_for_people

        return describe_for_people(type_info(self.returns))

    def group_of(self, arguments: Arguments) -> Hashable:
        """The concurrency group of a call with these arguments. Only where `concurrency_group` is a param's name."""
        assert isinstance(self.concurrency_group, str), "the other kinds of groups don't depend on arguments"
        return self.name, _encode(self.input.value(arguments, self.concurrency_group))


def output_check(returns: Any) -> Callable[[bytes], object]:
    """A function that raises for a text that is no JSON of the declared type: a handler's `Raw` may hold anything.

    Raises `TypeError` for a type that msgspec can't decode.
    """
    if returns in _ANYTHING:
        return build_decoder(msgspec.Raw)  # looks through the text without making values of it
    if get_origin(returns) in (dict, list) and (get_args(returns) or (Any,))[-1] in _ANYTHING:
        return build_decoder(dict[str, msgspec.Raw] if get_origin(returns) is dict else list[msgspec.Raw])
    return build_decoder(returns)


def is_plain(result: object, returns: Any) -> bool:
    """Whether a result is seen to be JSON of its declared type, and without floats, by a look at its own members alone.

    Where it is, no walk through a long text need tell so. False says nothing.
    """
    match result:
        case str():
            declared, members = returns is str, [result]
        case dict():
            declared, members = returns == dict[str, Any], [*result.values()]
        case list():
            declared, members = returns == list[Any], result
        case _:
            return False
    return (declared or returns in _ANYTHING) and _PLAIN.issuperset(map(type, members))


_ANYTHING: Final = (Any, object, msgspec.Raw)
_PLAIN: Final = frozenset((str, int, bool, type(None)))
"""Exactly these types: msgspec has no hook for them, and what it writes for them is JSON."""
