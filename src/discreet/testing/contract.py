"""Checks that services keep what they declare: errors, types, descriptions, and the schemas that callers rely on.

Runs examples, compares, and reports all violations at once. Never changes a service or a file.
"""

from __future__ import annotations

import copy
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from traceback import FrameSummary, extract_tb
from typing import Any, Final, TypeAlias, final

import anyio
import msgspec
from msgspec import UNSET, UnsetType

from ..client import ClientError, Peer, RemoteError
from ..client.peer import DEFAULT_TIMEOUT
from ..client.validation import StrPath, check_errors
from ..compatibility.changes import ContractChange, additions, breaking_changes
from ..daemon.operations.params import Arguments
from ..daemon.operations.service import Service
from ..daemon.operations.spec import OperationSpec
from ..errors.decoders import ExternalSchema, decoder_for
from ..errors.exceptions import OperationError, failure_of
from ..errors.failures import DomainFailure
from ..schemas.documents import Snapshot, read_snapshot, snapshot
from .memory import in_memory, refuse_event_loop

Scenario: TypeAlias = Callable[[Peer], Awaitable[object]]
"""A test of more than one call, which makes its own assertions."""


class Example(msgspec.Struct, frozen=True):
    """One call and its expected outcome.

    `error` is the class or the code (`"INVALID_INPUT"`, `"FORBIDDEN"`) of the expected error; None expects success. `result` is
    the expected result, `events` are the first events of a subscription, as Python values or as plain JSON. Without them, any
    values of the declared type are accepted. A subscription without `events` must end by itself. With `error`, `events` are
    those before the error. `service_params` are sent with the request: credentials, for example.

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


# Observes which operations run and which errors they raise, in calls from clients and from other operations. Changes neither.


@final
class OperationObserver:
    """Records the calls of the services that `observed` returned.

    `exercised` holds the names of operations whose handlers ran. The others hold errors, as pairs of an operation's name
    and a code: `raised` were raised as declared, `undeclared` are not declared by their operation, `invalid_details` have
    details of other types than declared.
    """

    def __init__(self) -> None:
        self.exercised: set[str] = set()
        self.raised: set[tuple[str, str]] = set()
        self.undeclared: set[tuple[str, str]] = set()
        self.invalid_details: set[tuple[str, str]] = set()

    def observed(self, service: Service) -> Service:
        """Return a copy of the service whose handlers are observed. The service itself is not changed."""
        twin = copy.copy(service)
        twin.operations = [
            msgspec.structs.replace(spec, invoke=self._observed_handler(spec)) for spec in service.operations
        ]
        return twin

    def _observed_handler(self, spec: OperationSpec) -> Callable[[Any, Arguments], Any]:
        def call(ctx: Any, values: Arguments) -> Any:
            with self._observing(spec):
                return spec.invoke(ctx, values)

        async def wait(ctx: Any, values: Arguments) -> Any:
            with self._observing(spec):
                return await spec.invoke(ctx, values)

        async def stream(ctx: Any, values: Arguments) -> AsyncGenerator[Any]:
            with self._observing(spec):
                events = spec.invoke(ctx, values)
                try:
                    async for event in events:
                        yield event
                finally:
                    await events.aclose()

        match spec.mode:
            case "inline" | "thread" | "forward":
                return call
            case "async":
                return wait
            case "stream":
                return stream

    @contextmanager
    def _observing(self, spec: OperationSpec) -> Iterator[None]:
        self.exercised.add(spec.name)
        try:
            yield
        except (OperationError, BaseExceptionGroup) as exc:
            self._record(spec, exc)
            raise

    def _record(self, spec: OperationSpec, exc: BaseException) -> None:
        while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
            exc = exc.exceptions[0]  # the daemon, too, treats a group of exactly one as that one
        if not isinstance(exc, OperationError):
            return
        error = spec.name, exc.definition.code
        try:
            failure = failure_of(exc, spec.errors)
        except (msgspec.ValidationError, TypeError):
            self.invalid_details.add(error)
            return
        if isinstance(failure, DomainFailure):
            self.raised.update((spec.name, cls.definition.code) for cls in spec.errors if isinstance(exc, cls))
        else:
            self.undeclared.add(error)


_REMEDY: Final = "; add one, or list the error in unprovoked"


class Violation(msgspec.Struct, frozen=True):
    """One break of a declaration. `where` is an operation with its params, a scenario, or the snapshot's file."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class ContractReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check.

    `exercised` are the operations that ran, `unexercised` the others. `errors` are the declared errors that were raised
    (operation, code). `additions` are new since the snapshot and break no caller; a new snapshot will hold them.
    """

    violations: tuple[Violation, ...]
    exercised: tuple[str, ...]
    unexercised: tuple[str, ...]
    errors: tuple[tuple[str, str], ...]
    additions: tuple[ContractChange, ...]


@final
class ContractBroken(AssertionError):
    """A service does not keep what it declares. The message has one line per violation; `report` is the whole result."""

    def __init__(self, report: ContractReport) -> None:
        super().__init__("\n".join(["the contract is broken", *(f"- {violation}" for violation in report.violations)]))
        self.report = report


def check_contract(
    *services: Service,
    examples: Iterable[Example | Scenario] | None = (),
    snapshot: StrPath | None = None,
    descriptions: bool = True,
    unprovoked: Sequence[type[OperationError]] = (),
    **options: Any,  # those of `in_memory`
) -> ContractReport:
    """Check that services keep what they declare. For tests that are plain functions: it runs an event loop of its own.

        def test_the_contract_holds() -> None:
            check_contract(
                notes,
                examples=[
                    Example("notes/add", {"title": "Milk"}, result={"id": 1, "title": "Milk"}),
                    Example("notes/read", {"id": 2}, error=NoSuchNote),
                ],
                snapshot="notes.schema.json",
            )

    - Each of the `examples` has the outcome that it states, one after another against one daemon (`in_memory`, with
      `options`). A scenario is a coroutine function that takes the peer.
    - Every declared error of an external operation was raised, but for `unprovoked` ones, and no other. With
      `examples=None` errors are not checked.
    - No change breaks callers of the operations in the file `snapshot`, which `discreet schema APP -o FILE` writes.
    - Every external operation has a description, unless `descriptions` is False.

    Raises `ContractBroken` (an `AssertionError`) with all violations, `TypeError` for wrong arguments, and what `in_memory`
    raises. Raises `RuntimeError` in a coroutine.
    """
    __tracebackhide__ = True  # pytest shows the test's line, not this module
    refuse_event_loop("check_contract")
    for service in services:
        if not isinstance(service, Service):
            raise TypeError(f"check_contract takes services, not {type(service).__name__}")
    check_errors(unprovoked, "unprovoked")
    examples = None if examples is None else tuple(examples)
    external = {spec.name: spec for service in services for spec in service.operations if spec.visibility == "external"}
    seen = OperationObserver()
    violations: list[Violation] = []
    if examples is not None:
        violations += anyio.run(_run, services, examples, seen, options, backend=options.get("backend", "asyncio"))
        violations += _errors(external.values(), seen, unprovoked)
    if descriptions:
        violations += [Violation(name, "has no description") for name, spec in external.items() if not spec.description]
    added: tuple[ContractChange, ...] = ()
    if snapshot is not None:
        broken, added = _compared(snapshot, external.values())
        violations += broken
    report = ContractReport(
        violations=tuple(violations),
        exercised=tuple(sorted(seen.exercised)),
        unexercised=tuple(sorted(external.keys() - seen.exercised)),
        errors=tuple(sorted(seen.raised)),
        additions=added,
    )
    if violations:
        raise ContractBroken(report)
    return report


async def _run(
    services: Sequence[Service],
    examples: Sequence[Example | Scenario],
    seen: OperationObserver,
    options: dict[str, Any],
) -> list[Violation]:
    specs = {spec.name: spec for service in services for spec in service.operations}
    violations: list[Violation] = []
    async with in_memory(*map(seen.observed, services), **options) as peer:
        for example in examples:
            try:
                if isinstance(example, Example):
                    await run_example(peer, example, specs.get(example.operation.removeprefix("/")))
                else:
                    await run_scenario(peer, example)
            except ExampleFailed as exc:
                violations.append(Violation(_name(example), str(exc)))
    return violations


def _name(example: Example | Scenario) -> str:
    if isinstance(example, Example):
        params = "" if example.params is None else f" {msgspec.json.encode(example.params).decode()}"
        return f"{example.operation}{params}"
    return getattr(example, "__name__", "a scenario")


def _errors(
    specs: Iterable[OperationSpec], seen: OperationObserver, unprovoked: Sequence[type[OperationError]]
) -> Iterator[Violation]:
    excused = {cls.definition.code for cls in unprovoked}
    for name, code in sorted(seen.undeclared):
        yield Violation(name, f"raised {code}, which it does not declare")
    for name, code in sorted(seen.invalid_details):
        yield Violation(name, f"raised {code} with details of other types than it declares")
    for spec in specs:
        for cls in spec.errors:
            code = cls.definition.code
            if code not in excused and (spec.name, code) not in seen.raised:
                yield Violation(spec.name, f"no example raised its error {code}{_REMEDY}")


def _compared(path: StrPath, specs: Iterable[OperationSpec]) -> tuple[list[Violation], tuple[ContractChange, ...]]:
    """Return what breaks callers since the snapshot was taken, and what is new."""
    where = os.fspath(path)
    old = _read(where)
    if isinstance(old, Violation):
        return [old], ()
    current = snapshot(specs)
    return [Violation(where, str(change)) for change in breaking_changes(old, current)], additions(old, current)


def _read(path: str) -> Snapshot | Violation:
    try:
        with open(path, "rb") as file:
            return read_snapshot(file.read())
    except FileNotFoundError:
        return Violation(path, "there is no snapshot; `discreet schema APP -o FILE` writes one")
    except ValueError as exc:
        return Violation(path, str(exc))
