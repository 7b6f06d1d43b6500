"""How authors declare operations: typed functions with a decorator of a `Service`. Checks declarations, runs nothing.

files = Service("files")

@files.query(errors=[FileNotFound])
async def read(ctx: Context, path: str, limit: int = 65536) -> FileContent:
    '''Read one file under the workspace root.'''
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final, ParamSpec, TypeVar, Unpack, final, get_args, get_origin

import msgspec
from msgspec import UNSET

from .access import AccessRule
from .json_types import require_json_members, require_json_type
from .options import (
    OperationOptions,
    check_name,
    check_names,
    check_options,
    check_text,
    concurrency_group,
    declared_errors,
    mode_of,
    name_of,
)
from .params import ANNOTATION_ERRORS, InputModel, build_input, return_type
from .spec import OperationKind, OperationSpec, output_check

P = ParamSpec("P")
R = TypeVar("R")

_WRONG: Final = (TypeError, ValueError, *ANNOTATION_ERRORS)
"""What the checks raise, and what msgspec and `inspect` raise for types and signatures that they can't read."""


class DeclarationError(Exception):
    """A service is declared wrongly. The message is one line: the operation, what is wrong, and what to write instead."""


@final
class Service:
    """A namespace of operations: those of `Service("files")` are called `files/<function>`, of `Service("")` `<function>`.

    `uses` names the operations, of any service in the daemon, that its handlers may call with `ctx.call`. These calls
    are checked against `authority`, the service's own scopes, never against the caller's. `capabilities` names the
    credentials that its handlers find in `ctx.capabilities`. `announces` is added to the capabilities that `initialize`
    answers with, which LSP's clients read before they use a method (`{"hoverProvider": True}`).

    Its constructor and its decorators raise `DeclarationError` for a wrong declaration.
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
        try:
            if namespace != "":
                check_name(namespace)
            check_text("description", description)
            check_names("uses", uses, "files/read")
            for used in uses:
                check_name(used.removeprefix("/"))
            check_names("authority", authority, "files:read")
            check_names("capabilities", capabilities, "github")
            _check_announces(announces or {})
        except _WRONG as exc:
            raise DeclarationError(_one_line(f"service {namespace!r}: {exc}")) from exc
        self.namespace = namespace
        self.description = description
        self.uses = frozenset(name.removeprefix("/") for name in uses)
        self.authority = frozenset(authority)
        self.capabilities = frozenset(capabilities)
        self.announces = dict(announces or {})
        self.operations: list[OperationSpec] = []

    def query(
        self, *misplaced: object, **options: Unpack[OperationOptions]
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Declare an operation that only reads and may be repeated. See `OperationOptions`.

        Returns the function unchanged.
        """
        return self._declare("query", misplaced, options)

    def mutation(
        self, *misplaced: object, **options: Unpack[OperationOptions]
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Declare an operation that changes something. See `OperationOptions`. Returns the function unchanged."""
        return self._declare("mutation", misplaced, options)

    def subscription(
        self, *misplaced: object, **options: Unpack[OperationOptions]
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Declare an operation that sends events: an asynchronous generator, annotated `AsyncIterator[T]`.

        See `OperationOptions`; without `timeout` it has no deadline. Returns the function unchanged.
        """
        return self._declare("subscription", misplaced, options)

    def _declare(
        self, kind: OperationKind, misplaced: tuple[object, ...], options: OperationOptions
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        if misplaced:
            raise DeclarationError(
                f"service {self.namespace!r}: @service.{kind} has no parentheses; write @service.{kind}()"
            )

        def register(func: Callable[P, R]) -> Callable[P, R]:
            shown = _qualified(self.namespace, getattr(func, "__name__", type(func).__name__))
            try:
                check_options(options)
                shown = name = _qualified(self.namespace, name_of(func, options))
                self.operations.append(self._specify(name, kind, func, options))
            except _WRONG as exc:
                raise DeclarationError(_one_line(f"operation {shown}: {exc}")) from exc
            return func

        return register

    def _specify(
        self, name: str, kind: OperationKind, func: Callable[..., Any], options: OperationOptions
    ) -> OperationSpec:
        check_name(name)
        mode = mode_of(kind, func, options)
        model = build_input(func)
        _check_params(model)
        returns = _returns(func, kind)
        require_json_type(returns, "an event" if kind == "subscription" else "the result")
        description = options.get("description") or _description(func)
        check_text("the docstring", description)
        return OperationSpec(
            name=name,
            kind=kind,
            mode=mode,
            input=model,
            invoke=model.invoker(func),
            returns=returns,
            output=output_check(returns),
            errors=declared_errors(options),
            description=description,
            timeout=options.get("timeout", None if kind == "subscription" else UNSET),
            concurrency_group=concurrency_group(options, model.names),
            concurrency_limit=options.get("concurrency", 1),
            visibility=options.get("visibility", "external"),
            access=AccessRule(frozenset(options.get("scopes", ())), frozenset(options.get("any_scope", ()))),
            limit=options.get("limit"),
            uses=self.uses,
            authority=self.authority,
        )


def _qualified(namespace: str, verb: str) -> str:
    return f"{namespace}/{verb}" if namespace else verb


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _check_announces(announces: object) -> None:
    if not isinstance(announces, Mapping) or not all(isinstance(name, str) for name in announces):
        raise TypeError('announces must be a mapping with strings as keys, such as {"hoverProvider": True}')
    try:
        msgspec.json.encode(announces)
    except (TypeError, ValueError, RecursionError):
        raise TypeError("announces must hold values that JSON can represent") from None


def _check_params(model: InputModel) -> None:
    if model.extra is not None:
        require_json_type(model.extra, "the further params")
    if model.names:
        require_json_members(model.type, "parameter '", "'")


def _returns(func: Callable[..., Any], kind: OperationKind) -> Any:
    """The type of the result, or of one event; Any without an annotation."""
    returns = return_type(func)
    if kind != "subscription" or returns is Any:
        return returns
    if get_origin(returns) not in (AsyncIterator, AsyncGenerator, AsyncIterable):
        raise TypeError("a subscription must be annotated AsyncIterator[T], where T is the type of its events")
    return get_args(returns)[0]


def _description(func: Callable[..., Any]) -> str:
    doc = inspect.getdoc(func) or ""
    return doc.split("\n\n")[0].replace("\n", " ").strip()
