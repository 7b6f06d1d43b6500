"""One operation as data: its name, kind, contract, and how its handler is run."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, Literal, TypeAlias, get_args, get_origin

import msgspec

from ...errors.exceptions import OperationError
from .access import AccessRule
from .params import InputModel, Values

Kind: TypeAlias = Literal["query", "mutation", "subscription"]
Mode: TypeAlias = Literal["inline", "async", "thread", "stream", "forward"]
Visibility: TypeAlias = Literal["external", "internal"]


class DefaultTimeout(msgspec.Struct, frozen=True):
    """The operation has no deadline of its own: the daemon's setting holds."""


DEFAULT_TIMEOUT: Final = DefaultTimeout()

Timeout: TypeAlias = float | None | DefaultTimeout

_encode = msgspec.json.Encoder().encode


class Forward(msgspec.Struct, frozen=True):
    """Another operation that a call is meant for: its method, its params as JSON text, and whether it must be a
    subscription."""

    method: str
    params: msgspec.Raw
    subscribe: bool


class OperationSpec(msgspec.Struct, frozen=True, eq=False):
    """What the registry knows of an operation.

    `mode` says how the handler runs: on the loop at once (`inline`, it never blocks), as a coroutine (`async`), in a
    worker thread, or as an asynchronous generator (`stream`); `forward` is no handler but tells, as a `Forward`, which other
    operation a call is meant for. `invoke(ctx, values)` calls it with what `input.decode`
    gave. `returns` is the type of its result, or of one event; `output` checks it where encoding alone would not
    prove it. `timeout` is in seconds, None for no deadline. `lane` runs it one at a time: True for all of its calls, a
    param's name for those with the same value of it. `limit` is how many may be in the daemon at once. `uses` are the
    operations that it may call, with the scopes of `authority`. `at_once` is for the way out itself. `waits` is for what
    does nothing but wait: it takes no place among the requests that run at the same time, but one of those that its lane is
    wide. Who finds them all taken waits while others come to their end, and is refused when none does.
    """

    name: str
    kind: Kind
    mode: Mode
    input: InputModel
    invoke: Callable[[Any, Values], Any]
    returns: Any
    output: Callable[[bytes], object] | None
    errors: tuple[type[OperationError], ...]
    description: str
    timeout: Timeout = DEFAULT_TIMEOUT
    lane: Literal[True] | str | None = None
    visibility: Visibility = "external"
    access: AccessRule = AccessRule()
    limit: int | None = None
    uses: frozenset[str] = frozenset()
    authority: frozenset[str] = frozenset()
    at_once: bool = False
    waits: bool = False
    width: int = 1

    @property
    def namespace(self) -> str:
        """What stands before the last part of the name; empty where there is nothing."""
        return self.name.rpartition("/")[0]

    def described_params(self) -> list[str]:
        """The params for people, in order: `level: string`, `limit?: integer` where it may be left out."""
        from msgspec import inspect  # late: only those who ask pay for it

        from .type_phrases import members, phrase

        node = inspect.type_info(self.input.type)
        if not isinstance(node, inspect.StructType):
            return []
        return [
            f"{name}{'' if field.required else '?'}: {phrase(field.type)}"
            for name, field in members(node).items()
            if name in self.input.names
        ]

    def described_result(self) -> str:
        """The result's type for people."""
        from msgspec import inspect  # late, as above

        from .type_phrases import phrase

        return phrase(inspect.type_info(self.returns))

    def lane_of(self, args: Values) -> Hashable:
        """Which calls must not run beside this one: those with an equal lane. Only where `lane` is not None."""
        if not isinstance(self.lane, str):
            return self.name
        return self.name, _encode(self.input.value(args, self.lane))

    def encode_output(self, result: object) -> bytes:
        """The result as JSON text, checked against the declared type.

        Raises `TypeError`, `ValueError` or `RecursionError` for what JSON can't hold and `msgspec.ValidationError`
        for what was not declared.
        """
        encoded = _encode(result)
        if self.output is not None:
            self.output(encoded)
        return encoded


def output_check(returns: Any) -> Callable[[bytes], object] | None:
    """What proves that a JSON text is of a declared type, by raising where it is not; None where every text is.

    Raises `TypeError` for a type that can't be checked.
    """
    if returns in (Any, object, msgspec.Raw):
        return None
    if get_origin(returns) in _CONTAINERS and get_args(returns)[-1] in (Any, object, msgspec.Raw):
        opening = _CONTAINERS[get_origin(returns)]
        return lambda encoded: _require(encoded.startswith(opening))
    return msgspec.json.Decoder(returns).decode


_CONTAINERS: Final = {dict: b"{", list: b"["}
"""Types of which the first byte proves everything, when what they hold may be anything."""


def _require(declared: bool) -> None:
    if not declared:
        raise msgspec.ValidationError
