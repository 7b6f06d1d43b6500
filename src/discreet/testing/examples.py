"""Calls that show what a service promises, and how one is run against it. Knows nothing of snapshots or reports."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from ..client import ClientError, Peer, RemoteError
from ..client.peer import DEFAULT_TIMEOUT
from ..daemon.operations.spec import OperationSpec
from ..errors.exceptions import OperationError
from ..errors.type_building import decoder_for

Scenario: TypeAlias = Callable[[Peer], Awaitable[object]]
"""What takes more than one call to show. It asserts for itself."""


class Example(msgspec.Struct, frozen=True):
    """One call and how it ends.

    It ends well, unless `error` names a class of errors or a code (`"INVALID_INPUT"`, `"FORBIDDEN"`). `result` is the
    expected result, `events` are the first events of a subscription, as Python values or as plain JSON; left out,
    anything of the declared type will do. A subscription without `events` must come to its end by itself.
    `service_params` travel with the request: credentials, for example.
    """

    operation: str
    params: Any = None  # whatever encodes to an object or an array
    result: Any = UNSET  # of the operation's own type
    events: Sequence[Any] | UnsetType = UNSET
    error: type[OperationError] | str | None = None
    service_params: Mapping[str, str] | None = None

    @property
    def code(self) -> str | None:
        """The code of the expected error."""
        return self.error if self.error is None or isinstance(self.error, str) else self.error.definition.code


class Mismatch(Exception):
    """An example or a scenario did not go as it says; the message is for its author."""


async def run_example(peer: Peer, example: Example, spec: OperationSpec | None) -> None:
    """Make the call of an example. Raises `Mismatch`. `spec` is None where there is no such operation."""
    returns: Any = Any if spec is None else spec.returns
    streams = spec is not None and spec.kind == "subscription"
    wanted = example.events if streams else example.result
    expected = UNSET if wanted is UNSET else _of_type(_list_of(returns) if streams else returns, wanted)
    try:
        found = await (_events if streams else _result)(peer, example, returns)
    except ClientError as exc:
        if example.code is not None and isinstance(exc, RemoteError) and exc.code == example.code:
            return
        raise Mismatch(f"ended with {exc}{f', not {example.code}' if example.code else ''}") from exc
    if example.code is not None:
        raise Mismatch(f"ended well, not with {example.code}")
    if expected is not UNSET and found != expected:
        raise Mismatch(f"gave {_shown(found)}, not {_shown(expected)}")


async def run_scenario(peer: Peer, scenario: Scenario) -> None:
    """Run a scenario. Raises `Mismatch` for what it asserts in vain, and for calls that fail; its other faults leave."""
    try:
        await scenario(peer)
    except (AssertionError, ClientError) as exc:
        said = str(exc).partition("\n")[0]  # pytest explains an assertion on further lines
        raise Mismatch(f"{type(exc).__name__}: {said}" if said else type(exc).__name__) from exc


async def _result(peer: Peer, example: Example, returns: Any) -> Any:
    return await peer.call(example.operation, example.params, type=returns, service_params=example.service_params)


async def _events(peer: Peer, example: Example, returns: Any) -> list[Any]:
    """As many events as the example tells of; all of them where it tells of none, or of an error behind them."""
    most = None if isinstance(example.events, UnsetType) or example.code else len(example.events) or None
    found: list[Any] = []
    async with peer.subscribe(
        example.operation,
        example.params,
        type=returns,
        service_params=example.service_params,
        timeout=DEFAULT_TIMEOUT,
    ) as stream:
        async for event in stream:
            found.append(event)
            if len(found) == most:
                break
    return found


def _list_of(tp: Any) -> Any:
    made: Any = list[tp]  # a type made at run time is none to a type checker
    return made


def _of_type(tp: Any, value: Any) -> Any:
    """What a caller would read. Raises `Mismatch` for what can't be read as the declared type."""
    try:
        return decoder_for(tp)(msgspec.json.encode(value))
    except (msgspec.ValidationError, TypeError) as exc:
        raise Mismatch(f"expects what is not of the declared type: {exc}") from exc


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()
