"""One operation as data: its name, kind, contract, and how its handler is run. Runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, get_args, get_origin

import msgspec
from msgspec import UNSET, UnsetType

from ...errors.decoders import build_decoder, json_encoder, type_info
from ...errors.exceptions import OperationError
from ...errors.failures import Failure
from ..declarations import Offer
from .access import AccessRule
from .decoders import Arguments
from .json_types import require_finite, unencodable_member
from .params import InputModel

T = TypeVar("T")

OperationKind: TypeAlias = Literal["query", "mutation", "subscription", "notification"]
HandlerMode: TypeAlias = Literal["inline", "async", "thread", "stream", "forward"]
Visibility: TypeAlias = Literal["external", "internal"]

Immediate: TypeAlias = Literal["never", "unordered", "always"]
Timeout: TypeAlias = float | UnsetType | None
"""Seconds; None for no deadline; UNSET where the daemon's setting `request-timeout` applies."""

_encode = json_encoder()


class Forward(msgspec.Struct, frozen=True):
    """Another operation that a call is meant for: its method, its params as JSON text, where in the call's own params
    these stand, and whether it must be a subscription (None: it may be one).

    `rendering` writes its outcome; `progress_token` is the one that stood beside the params. For a `patient` caller the
    daemon's default deadline does not apply. `name` is that by which the caller knows the operation, where it is another.
    """

    method: str
    params: msgspec.Raw
    subscribe: bool | None
    prefix: str = "input"
    rendering: Any = None  # Any: a `rpc.envelope.Rendering`, which operations know nothing of
    progress_token: str | int | UnsetType | None = UNSET
    patient: bool = False
    name: str = ""


class ClientGroup(msgspec.Struct, frozen=True):
    """A concurrency group that every client has for itself, and that all operations of this group's name share."""

    name: str


class ServerEvent(msgspec.Struct, Generic[T], frozen=True):
    """An event of a subscription with the number that it has in the log it comes from, so that clients can resume there.

    `id` is that number, 0 or more, and rises from event to event. By HTTP it is the event's `id`, and `ctx.last_event_id`
    is that of the last one that a client has.
    """

    value: T
    id: int


class WrongResult(Exception):
    """A handler gave what its annotation or JSON does not allow. The text names types, never the value."""


class OperationSpec(msgspec.Struct, frozen=True, eq=False):
    """What the registry knows of an operation.

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

    `offer` is set where it is no tool but a resource or a prompt to clients that tell these apart.
    `command` marks one that editors run by its name. `options` are what a dialect says of the operation beside its types.
    `idempotent` says of a mutation that it may be repeated. `etag` says that results of a query get an `ETag` by HTTP, `numbered`
    that the events of a subscription are `ServerEvent`.

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
    command: bool = False
    options: Any = None  # Any: what the dialect of the client takes
    etag: bool = False
    numbered: bool = False
    idempotent: bool = False
    admits: Callable[[Mapping[str, str]], Failure | None] | None = None

    @property
    def has_result(self) -> bool:
        """Whether a call has a result other than null."""
        return self.kind != "notification" and self.returns not in (None, type(None))

    def describe_params(self) -> list[str]:
        """The params for people, in the order of the signature: `level: string`, or `limit?: integer` if optional."""
        from msgspec import inspect  # late: only `describeMethods` needs it

        from .type_phrases import describe_for_people
        from .type_shapes import object_members

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

    def encode_output(self, result: object) -> bytes:
        """The result as JSON text, checked against the declared type.

        Raises `WrongResult` for a value that JSON can't represent, and for one of another type than declared.
        """
        try:
            encoded = _encode(result)
            if self.floats and b"null" in encoded:  # which is what msgspec writes for a number that JSON can't hold
                require_finite(result)
            if self.output is not None:
                self.output(encoded)
        except (TypeError, ValueError, RecursionError) as exc:  # `ValidationError` is a `ValueError`
            raise WrongResult(self._wrong(result, exc)) from None
        return encoded

    def _wrong(self, result: object, exc: Exception) -> str:
        verb = "yielded" if self.kind == "subscription" else "returned"
        if isinstance(result, Coroutine):
            result.close()
            return f"{verb} a coroutine: is an `await` missing?"
        what = f"{verb} {type(result).__qualname__}"
        if isinstance(result, OperationError):
            return f"{what}, which is to be raised: write `raise {type(result).__name__}(…)`"
        if isinstance(exc, msgspec.ValidationError):
            annotated = "" if self.returns is Any else f", but is annotated {self.describe_result()}"
            return f"{what}{annotated}: {exc}"
        place = "" if isinstance(exc, RecursionError) else unencodable_member(result)
        return f"{what}: {f'at {place}: ' if place else ''}{exc}"


def output_check(returns: Any) -> Callable[[bytes], object]:
    """A function that raises for a text that is no JSON of the declared type: a handler's `Raw` may hold anything.

    Raises `TypeError` for a type that msgspec can't decode.
    """
    if returns in _ANYTHING:
        return build_decoder(msgspec.Raw)  # looks through the text without making values of it
    if get_origin(returns) in (dict, list) and (get_args(returns) or (Any,))[-1] in _ANYTHING:
        return build_decoder(dict[str, msgspec.Raw] if get_origin(returns) is dict else list[msgspec.Raw])
    return build_decoder(returns)


_ANYTHING: Final = (Any, object, msgspec.Raw)
