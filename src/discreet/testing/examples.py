"""Example calls, and how one is run against a service. Knows nothing of snapshots or reports."""

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
"""A test of more than one call, which makes its own assertions."""


class Example(msgspec.Struct, frozen=True):
    """One call and its expected outcome.

    `error` is the class or the code (`"INVALID_INPUT"`, `"FORBIDDEN"`) of the expected error; None expects success.
    `result` is the expected result, `events` are the first events of a subscription, as Python values or as plain JSON;
    left out, any of the declared type are accepted. A subscription without `events` must end by itself.
    `service_params` are sent with the request: credentials, for example.
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


class ExampleFailed(Exception):
    """An example or a scenario did not have the expected outcome. The message is for its author."""


async def run_example(peer: Peer, example: Example, spec: OperationSpec | None) -> None:
    """Make the call of an example. Raises `ExampleFailed`. `spec` is None if there is no such operation."""
    returns: Any = Any if spec is None else spec.returns
    streams = spec is not None and spec.kind == "subscription"
    wanted = example.events if streams else example.result
    expected = UNSET if wanted is UNSET else _decoded(_list_of(returns) if streams else returns, wanted)
    try:
        found = await (_events if streams else _result)(peer, example, returns)
    except ClientError as exc:
        if example.code is not None and isinstance(exc, RemoteError) and exc.code == example.code:
            return
        raise ExampleFailed(f"ended with {exc}{f', not {example.code}' if example.code else ''}") from exc
    if example.code is not None:
        raise ExampleFailed(f"succeeded, and did not fail with {example.code}")
    if expected is not UNSET and found != expected:
        raise ExampleFailed(f"gave {_shown(found)}, not {_shown(expected)}")


async def run_scenario(peer: Peer, scenario: Scenario) -> None:
    """Run a scenario. Raises `ExampleFailed` for a failed assertion or call; other exceptions pass through."""
    try:
        await scenario(peer)
    except (AssertionError, ClientError) as exc:
        message = str(exc).partition("\n")[0]  # pytest explains an assertion on further lines
        raise ExampleFailed(f"{type(exc).__name__}: {message}" if message else type(exc).__name__) from exc


async def _result(peer: Peer, example: Example, returns: Any) -> Any:
    return await peer.call(example.operation, example.params, type=returns, service_params=example.service_params)


async def _events(peer: Peer, example: Example, returns: Any) -> list[Any]:
    """Return as many events as the example expects; all of them if it expects none, or an error after them."""
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
    made: Any = list[tp]  # type checkers do not accept a type made at run time
    return made


def _decoded(tp: Any, value: Any) -> Any:
    """Return the value as a caller would decode it. Raises `ExampleFailed` if it is not of the declared type."""
    try:
        return decoder_for(tp)(msgspec.json.encode(value))
    except (msgspec.ValidationError, TypeError) as exc:
        raise ExampleFailed(f"the expected value is not of the declared type: {exc}") from exc


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()
