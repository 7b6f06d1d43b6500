"""Declares operations: typed functions with a decorator of a `Service`. Checks declarations, runs nothing.

files = Service("files")

@files.query(errors=[FileNotFound])
async def read(ctx: Context, path: str, limit: int = 65536) -> FileContent:
    '''Read one file under the workspace root.'''
"""

from __future__ import annotations

import inspect
import os
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    NoReturn,
    TypeAlias,
    TypeVar,
    Unpack,
    final,
    get_args,
    get_origin,
    overload,
)

import msgspec
from msgspec import UNSET

from ...errors.exceptions import OperationError
from .. import plugins
from ..declarations import Command, Completer, Prompt, Resource, asks_of, check_offer
from .json_types import may_hold_floats, require_json_members, require_json_type
from .params import ANNOTATION_ERRORS, InputModel, build_input, return_type
from .spec import (
    OperationKind,
    OperationOptions,
    OperationSpec,
    ServerEvent,
    access_rule,
    check_kind,
    check_lifespan,
    check_name,
    check_names,
    check_options,
    check_text,
    concurrency_group,
    declared_errors,
    description_of,
    in_worker_threads,
    mode_of,
    name_of,
    output_check,
)

# What tells that a service's operations are others than before, while it is served. Operations themselves never change.


@final
class Changes:
    """Tells the daemon that the operations of a service were replaced, in the thread that replaces them."""

    def __init__(self) -> None:
        self._watchers: list[Callable[[], None]] = []

    def watch(self, watcher: Callable[[], None]) -> None:
        """Have `watcher()` called after each change."""
        self._watchers.append(watcher)

    def leave(self, watcher: Callable[[], None]) -> None:
        """Stop calling `watcher`."""
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def announce(self) -> None:
        """Call the watchers: the operations were replaced."""
        for watcher in [*self._watchers]:
            watcher()


Handler = TypeVar("Handler", bound=Callable[..., Any])

Lifespan: TypeAlias = Callable[[], AbstractAsyncContextManager[Any]]
"""Called once, before the first request is read; what it yields is the `ctx.state` of the service's handlers."""

INITIALIZE: Final = "$initialize"
SHUTDOWN: Final = "$shutdown"
"""The names of the internal operations that `Service.initialize` and `Service.shutdown` declare."""

_ELSEWHERE: Final = {
    "tool": "a tool is a @service.query or a @service.mutation",
    "feature": 'a feature is a @service.query("textDocument/hover") or a @service.notification("textDocument/didSave")',
    "thread": "a plain `def` runs in a thread, without any decorator",
    "method": "a method is a @service.query or a @service.mutation",
    "workspace": "a handler has the open documents as ctx.documents, and the folders as ctx.documents.folders",
    "start_io": "discreet.serve(service)",
    "start_tcp": 'discreet.serve(service, tcp="127.0.0.1:2087")',
    "run": "discreet.serve(service)",
}
"""Names of other libraries, and what stands here for them."""

_WRONG: Final = (TypeError, ValueError, *ANNOTATION_ERRORS)
"""Exceptions of the checks, and of msgspec and `inspect` for types and signatures that they can't read."""


class DeclarationError(Exception):
    """A wrong declaration. The message is one line: the operation, what is wrong, and what to write instead."""


@final
class Service:
    """A namespace of operations. A function `read` becomes `files/read` in `Service("files")`, and `read` in `Service()`.

    `uses` names the operations of this daemon that the handlers may call with `ctx.call`. Such a call has the scopes in
    `authority`, not those of the first caller. `credentials` names the credentials that the handlers find in
    `ctx.credentials`.

    `dialect` is the protocol that the clients speak, unless the setting `dialect` names another. `capabilities` is added to
    the answer to `initialize`, for LSP clients: `{"hoverProvider": True}`. The answer names the daemon by the namespaces of
    all its services and by the first `version`.

    `lifespan()` is entered before the first request is read and left after the last answer. Its value is `ctx.state`.
    Operations that are declared while the service is served can be called from then on.

    The constructor and the decorators raise `DeclarationError` for a wrong declaration.
    """

    def __init__(  # noqa: PLR0913 - what a service declares
        self,
        namespace: str = "",
        *,
        description: str = "",
        version: str = "",
        dialect: str | None = None,
        uses: Sequence[str] = (),
        authority: Sequence[str] = (),
        credentials: Sequence[str] = (),
        capabilities: Mapping[str, Any] | None = None,  # Any: JSON
        lifespan: Lifespan | None = None,
    ) -> None:
        try:
            if namespace != "":
                check_name(namespace)
            check_text("description", description)
            if dialect not in (None, plugins.AUTO) and not plugins.is_known("dialect", dialect):
                raise ValueError(f"dialect must be one of {', '.join((*plugins.names('dialect'), plugins.AUTO))}")
            check_names("uses", uses, "files/read")
            for used in uses:
                check_name(used.removeprefix("/"))
            check_names("authority", authority, "files:read")
            check_names("credentials", credentials, "github")
            check_text("version", version)
            check_lifespan(lifespan)
            _check_capabilities(capabilities or {})
        except _WRONG as exc:
            raise DeclarationError(_one_line(f"service {namespace!r}: {exc}")) from exc
        self.namespace = namespace
        self.description = description
        self.version = version
        self.dialect: str | None = dialect
        self.uses = frozenset(name.removeprefix("/") for name in uses)
        self.authority = frozenset(authority)
        self.credentials = frozenset(credentials)
        self.capabilities = dict(capabilities or {})
        self.lifespan = lifespan
        self.enters_late = False  # the lifespan is entered with the first call, and not at the start
        self.operations: list[OperationSpec] = []
        self.changes: Changes | None = None
        self.late: Final = Changes()
        """Tells of each declaration. From the thread that declares."""
        self._known: Mapping[str, OperationSpec] = {}

    @overload
    def query(self, handler: Handler, /) -> Handler: ...
    @overload
    def query(self, method: str = "", /, **options: Unpack[OperationOptions]) -> Callable[[Handler], Handler]: ...
    def query(self, given: Any = "", /, **options: Unpack[OperationOptions]) -> Any:
        """Declare an operation that only reads and may be repeated. See `OperationOptions`. Returns the function unchanged."""
        return Service._declare(self, "query", given, options)

    @overload
    def mutation(self, handler: Handler, /) -> Handler: ...
    @overload
    def mutation(self, method: str = "", /, **options: Unpack[OperationOptions]) -> Callable[[Handler], Handler]: ...
    def mutation(self, given: Any = "", /, **options: Unpack[OperationOptions]) -> Any:
        """Declare an operation that changes something. See `OperationOptions`. Returns the function unchanged."""
        return Service._declare(self, "mutation", given, options)

    @overload
    def subscription(self, handler: Handler, /) -> Handler: ...
    @overload
    def subscription(
        self, method: str = "", /, **options: Unpack[OperationOptions]
    ) -> Callable[[Handler], Handler]: ...
    def subscription(self, given: Any = "", /, **options: Unpack[OperationOptions]) -> Any:
        """Declare an operation that sends events: an asynchronous generator, annotated `AsyncIterator[T]`.

        It may also be a plain generator, annotated `Iterator[T]`. Its steps run in worker threads, and a cancelled request waits
        for the step that runs.

        See `OperationOptions`; without `timeout` it has no deadline. Returns the function unchanged.
        """
        return Service._declare(self, "subscription", given, options)

    @overload
    def notification(self, handler: Handler, /) -> Handler: ...
    @overload
    def notification(
        self, method: str = "", /, **options: Unpack[OperationOptions]
    ) -> Callable[[Handler], Handler]: ...
    def notification(self, given: Any = "", /, **options: Unpack[OperationOptions]) -> Any:
        """Declare a handler of a notification. It returns nothing. A request for it is answered with null.

        All notifications of one client are handled one at a time, in the order of arrival. A request that follows those of
        plain `def` handlers waits for them. See `OperationOptions`; `serial`, `keyed` and `concurrency` don't apply. Returns
        the function unchanged.
        """
        return Service._declare(self, "notification", given, options)

    def resource(
        self,
        uri: str,
        /,
        *,
        mime_type: str = "",
        title: str = "",
        complete: Mapping[str, Completer] | None = None,
        **options: Unpack[OperationOptions],
    ) -> Callable[[Handler], Handler]:
        """Declare a query that clients of MCP read as a resource: `notes://today`, or a template, `notes://{day}`.

        The handler's params are the template's variables. It returns text, bytes, contents of `discreet.mcp`, or any other
        value, which is sent as JSON. `complete` maps a variable to a function that completes its value. The function takes the
        beginning of the value, returns a list, and must not block. Other clients see a query like any other. Returns the
        function unchanged.
        """
        if not isinstance(uri, str):
            raise DeclarationError(f'service {self.namespace!r}: @service.resource needs a URI: ("notes://today")')
        return Service._offer(self, Resource(uri, mime_type, title, complete or {}), options)

    def prompt(
        self,
        handler: Any = None,
        /,
        *,
        title: str = "",
        complete: Mapping[str, Completer] | None = None,
        **options: Unpack[OperationOptions],
    ) -> Any:
        """Declare a query that clients of MCP get as a prompt. The handler's params are its arguments.

        It returns the text of one message of the user, or a list of messages of `discreet.mcp`. `complete` is as for
        resources. Other clients see a query like any other. Returns the function unchanged.
        """
        declare = Service._offer(self, Prompt(title, complete or {}), options)
        return declare if handler is None else declare(handler)

    def _offer(self, offer: Resource | Prompt, options: OperationOptions) -> Callable[[Handler], Handler]:
        _require_service(self, "prompt" if isinstance(offer, Prompt) else "resource")

        def register(func: Handler) -> Handler:
            Service._declare(self, "query", "", options, *(name for name in offer.__struct_fields__ if name != "uri"))(
                func
            )
            spec = self.operations[-1]
            try:
                check_offer(offer, [name for name in spec.input.names if name not in asks_of(spec.input.type)])
            except _WRONG as exc:
                raise DeclarationError(_one_line(f"operation {spec.name}: {exc}")) from exc
            self.operations[-1] = msgspec.structs.replace(spec, offer=offer)
            self.late.announce()
            return func

        return register

    @overload
    def command(self, handler: Handler, /) -> Handler: ...
    @overload
    def command(self, command: str = "", /, **options: Unpack[OperationOptions]) -> Callable[[Handler], Handler]: ...
    def command(self, given: Any = "", /, **options: Unpack[OperationOptions]) -> Any:
        """Declare a mutation that editors run as a command. `fix` of `Service("todo")` is `todo.fix`.

        A name that is given is the whole name: `@service.command("words.count")`. Arguments come by position; `*args: T` takes
        the rest. Without `timeout` there is no deadline. Returns the function unchanged.
        """
        return Service._declare(self, "mutation", given, options, offer=Command())

    @overload
    def initialize(self, handler: Handler, /) -> Handler: ...
    @overload
    def initialize(self, /, *, errors: Sequence[type[OperationError]] = ()) -> Callable[[Handler], Handler]: ...
    def initialize(self, handler: Any = None, /, *, errors: Sequence[type[OperationError]] = ()) -> Any:
        """Declare a function that runs when a client says hello, before it is answered. Returns the function unchanged.

        Its params are those of the client's `initialize`; `ctx.client` has the main ones. It may return an object (a dict or a
        struct), whose members are added to the capabilities that the client is told. If it raises, the client is refused, with
        one of the `errors` or an internal error.
        """
        _require_service(self, "initialize")
        name = f"{self.namespace}/{INITIALIZE}".lstrip("/")
        declare = Service._declare(self, "query", name, {"visibility": "internal", "errors": errors})
        return declare if handler is None else declare(handler)

    @overload
    def shutdown(self, handler: Handler, /) -> Handler: ...
    @overload
    def shutdown(self, /, *, errors: Sequence[type[OperationError]] = ()) -> Callable[[Handler], Handler]: ...
    def shutdown(self, handler: Any = None, /, *, errors: Sequence[type[OperationError]] = ()) -> Any:
        """Declare a function that runs when a client of LSP or a plain one asks for the end, before it is answered.

        It takes no params but `ctx`, and may notify and ask the client. Clients of MCP and ACP close the pipe instead: work
        that must happen in any case belongs after the `yield` of a lifespan. Returns the function unchanged.
        """
        _require_service(self, "shutdown")
        name = f"{self.namespace}/{SHUTDOWN}".lstrip("/")
        declare = Service._declare(self, "mutation", name, {"visibility": "internal", "errors": errors})
        return declare if handler is None else declare(handler)

    if not TYPE_CHECKING:  # checkers know what there is

        def __getattr__(self, name: str) -> NoReturn:
            hint = f": {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
            raise AttributeError(f"a service has no {name}{hint}")

    def _declare(
        self, kind: OperationKind, given: object, options: OperationOptions, *more: str, offer: Command | None = None
    ) -> Any:
        decorator = kind if offer is None else "command"
        _require_service(self, decorator)

        def register(func: Handler) -> Handler:
            shown = method or _qualified(self.namespace, getattr(func, "__name__", type(func).__name__))
            try:
                check_options(options, *more)
                if method and "name" in options:
                    raise TypeError("it is named twice: keep the method or name=, not both")
                shown = name = method or _qualified(self.namespace, name_of(func, options))
                handler = in_worker_threads(func) if kind == "subscription" else func
                spec = self._specify(
                    name, kind, handler, options if offer is None else {"timeout": None, **options}, offer
                )
                self.operations.append(spec)
            except _WRONG as exc:
                raise DeclarationError(_one_line(f"operation {shown}: {exc}")) from exc
            self.late.announce()
            return func

        method = given if isinstance(given, str) else ""
        if given is method:
            return register
        if not options and (callable(given) or isinstance(given, staticmethod)):
            return register(given)
        raise DeclarationError(
            f"service {self.namespace!r}: @service.{decorator} takes a method (a string) and options by keyword, not {given!r}"
        )

    def _specify(
        self, name: str, kind: OperationKind, func: Callable[..., Any], options: OperationOptions, offer: Command | None
    ) -> OperationSpec:
        if (known := self._known.get(name)) is not None:
            return msgspec.structs.replace(known, invoke=known.input.invoker(func))
        check_name(name)
        check_kind(kind, options)
        mode = mode_of(kind, func, options)
        model = build_input(func, takes_rest=offer is not None)
        _check_params(model)
        returns, numbered = _returns(func, kind)
        require_json_type(returns, "an event" if kind == "subscription" else "the result")
        description = options.get("description") or description_of(func)
        check_text("the docstring", description)
        return OperationSpec(
            name=name,
            kind=kind,
            mode=mode,
            input=model,
            invoke=model.invoker(func),
            returns=returns,
            output=output_check(returns),
            floats=may_hold_floats(returns),
            errors=declared_errors(options),
            description=description,
            timeout=options.get("timeout", None if kind == "subscription" else UNSET),
            concurrency_group=concurrency_group(options, model.names, kind),
            concurrency_limit=options.get("concurrency", 1),
            visibility=options.get("visibility", "external"),
            access=access_rule(options),
            namespace=self.namespace,
            limit=options.get("limit"),
            options=options.get("options"),
            etag=options.get("etag", False),
            idempotent=options.get("idempotent", False),
            task=options.get("task"),
            offer=offer,
            numbered=numbered,
            uses=self.uses,
            authority=self.authority,
            source=source_of(func),
        )


def service_like(known: Mapping[str, OperationSpec]) -> Service:
    """A service without a namespace. What it declares under one of these names is that operation with another handler of the same
    signature: nothing is looked at or checked, which takes a thousand times as long.
    """
    service = Service("")
    service._known = known
    return service


def _require_service(given: object, decorator: str) -> None:
    """Raises for a decorator of the class, where the function has come in place of the service."""
    if not isinstance(given, Service):
        raise DeclarationError(
            f'write @shop.{decorator} of a service, shop = Service("shop"), not @Service.{decorator}'
        )


def _qualified(namespace: str, verb: str) -> str:
    return f"{namespace}/{verb}" if namespace else verb


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _check_capabilities(capabilities: object) -> None:
    if not isinstance(capabilities, Mapping) or not all(isinstance(name, str) for name in capabilities):
        raise TypeError('capabilities must be a mapping with strings as keys, such as {"hoverProvider": True}')
    try:
        msgspec.json.encode(capabilities)
    except (TypeError, ValueError, RecursionError):
        raise TypeError("capabilities must hold values that JSON can represent") from None


def _check_params(model: InputModel) -> None:
    if model.extra is not None:
        require_json_type(model.extra, "the further params")
    if model.whole:
        require_json_type(model.type, "the params")
    elif model.names:
        require_json_members(model.type, "parameter '", "'")


_STREAMS: Final = (AsyncIterator, AsyncGenerator, AsyncIterable, Iterator, Generator, Iterable)


def _returns(func: Callable[..., Any], kind: OperationKind) -> tuple[Any, bool]:
    """The type of the result, or of one event, Any without an annotation; and whether events are numbered."""
    returns = return_type(func)
    if kind == "notification" and returns not in (Any, None, type(None)):
        raise TypeError("a notification has no result; annotate the handler `-> None`")
    if kind != "subscription" and ServerEvent in (returns, get_origin(returns)):
        raise TypeError("only the events of a subscription are a ServerEvent; return the value itself")
    if kind != "subscription" or returns is Any:
        return returns, False
    if get_origin(returns) not in _STREAMS or not get_args(returns):
        raise TypeError("a subscription must be annotated AsyncIterator[T], where T is the type of its events")
    event = get_args(returns)[0]
    numbered = ServerEvent in (event, get_origin(event))
    return (get_args(event) or (Any,))[0] if numbered else event, numbered


def source_of(func: object) -> str:
    """Return the place of a function, as `app.py:12`; empty for a function in C, and for objects that can be called."""
    if not callable(func):
        return ""
    code = getattr(inspect.unwrap(func), "__code__", None)
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}" if code else ""
