"""Example calls, and how one is run against a service. Knows nothing of snapshots or reports."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from traceback import FrameSummary, extract_tb
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from ..client import ClientError, Peer, RemoteError
from ..client.peer import DEFAULT_TIMEOUT
from ..daemon.operations.spec import OperationSpec
from ..errors.decoders import ExternalSchema, decoder_for
from ..errors.exceptions import OperationError

Scenario: TypeAlias = Callable[[Peer], Awaitable[object]]
"""A test of more than one call, which makes its own assertions."""


class Example(msgspec.Struct, frozen=True):
    """One call and its expected outcome.

    `error` is the class or the code (`"INVALID_INPUT"`, `"FORBIDDEN"`) of the expected error; None expects success.
    `result` is the expected result, `events` are the first events of a subscription, as Python values or as plain JSON;
    left out, any of the declared type are accepted. A subscription without `events` must end by itself.
    With `error`, `events` are those before the error. `service_params` are sent with the request: credentials, for example.

    Raises `ValueError` for a `result` beside `events` or `error`.
    """

    operation: str
    params: Any = None  # whatever encodes to an object or an array
    result: Any = UNSET  # of the operation's own type
    events: Sequence[Any] | UnsetType = UNSET
    error: type[OperationError] | str | None = None
    service_params: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        if self.result is not UNSET and (self.error is not None or self.events is not UNSET):
            raise ValueError("an example has a result, or events, or an error")

    @property
    def code(self) -> str | None:
        """The code of the expected error."""
        return self.error if self.error is None or isinstance(self.error, str) else self.error.definition.code


class ExampleFailed(Exception):
    """An example or a scenario did not have the expected outcome. The message is for its author."""


async def run_example(peer: Peer, example: Example, spec: OperationSpec | None) -> None:
    """Make the call of an example. Raises `ExampleFailed`. `spec` is None if there is no such operation."""
    returns: Any = Any if spec is None or isinstance(spec.returns, ExternalSchema) else spec.returns
    streams = example.events is not UNSET if spec is None else spec.kind == "subscription"
    if streams and example.result is not UNSET:
        raise ExampleFailed("is a subscription, which has `events` and no `result`")
    if not streams and example.events is not UNSET:
        raise ExampleFailed("is no subscription: it has a `result` and no `events`")
    wanted = example.events if streams else example.result
    expected = UNSET if wanted is UNSET else _decoded(_list_of(returns) if streams else returns, wanted)
    events: list[Any] = []
    found: Any = events
    try:
        if streams:
            await _events(peer, example, returns, events)
        else:
            found = await _result(peer, example, returns)
    except ClientError as exc:
        if example.code is None or not isinstance(exc, RemoteError) or exc.code != example.code:
            ended = str(exc).removeprefix(f"{example.operation}: ")  # which the violation names already
            raise ExampleFailed(f"ended with {ended}{f', not {example.code}' if example.code else ''}") from exc
    else:
        if example.code is not None:
            raise ExampleFailed(f"succeeded, and did not fail with {example.code}")
    if expected is not UNSET and found != expected:
        raise ExampleFailed(f"gave {_shown(found)}, not {_shown(expected)}")


async def run_scenario(peer: Peer, scenario: Scenario) -> None:
    """Run a scenario. Raises `ExampleFailed` for a failed assertion or call; other exceptions pass through."""
    try:
        await scenario(peer)
    except (AssertionError, ClientError, OperationError) as exc:
        place = _place(exc, scenario)
        message = str(exc).partition("\n")[0] or place.line  # pytest explains an assertion on further lines
        where = f"{os.path.basename(place.filename)}:{place.lineno}"
        raise ExampleFailed(f"{where}: {type(exc).__name__}{f': {message}' if message else ''}") from exc


def _place(exc: BaseException, scenario: Scenario) -> FrameSummary:
    """The line of the scenario's own file that failed; the innermost line where the file is not known."""
    frames = extract_tb(exc.__traceback__)
    file = getattr(getattr(scenario, "__code__", None), "co_filename", None)
    return next((frame for frame in reversed(frames) if frame.filename == file), frames[-1])


async def _result(peer: Peer, example: Example, returns: Any) -> Any:
    return await peer.call(example.operation, example.params, type=returns, service_params=example.service_params)


async def _events(peer: Peer, example: Example, returns: Any, found: list[Any]) -> None:
    """Collect as many events as the example expects; all of them if it expects none, or an error after them."""
    most = None if isinstance(example.events, UnsetType) or example.code else len(example.events) or None
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
