"""Runs handlers and turns whatever they do into an outcome. The boundary: whatever a handler raises ends here.

An outcome is the result as JSON text or a `Failure`. Nothing of an exception's text goes to the wire; what is unexpected is
logged with its traceback.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Hashable, Sequence
from contextvars import Context as Variables
from contextvars import ContextVar, copy_context
from sys import exc_info
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from ...errors.decoders import json_encoder
from ...errors.exceptions import ExternalError, FailureError, OperationError, failure_of
from ...errors.failures import Failure, Internal
from ...errors.redaction.safe_call import type_name
from ...lazy import anyio
from ..logs import log
from ..logs.hooks import end_lines
from ..logs.logger import BOUND, INLINE, add_names
from ..memory import SMALL, MemoryBudget, reserve, values_size
from ..operations.access import Access, ProviderFailed
from ..operations.context import CallFailed, last_event_id
from ..operations.json_types import require_finite, unencodable_member
from ..operations.request import Outcome
from ..operations.spec import ClientGroup, OperationSpec, ServerEvent, WrongResult, is_plain
from ..process import children
from .task_pool import AsyncioGuard, HandlerLoop, TrioGuard, guard_task, in_context, out_of_task

if TYPE_CHECKING:
    from ..operations.context import Context
    from ..operations.params import Arguments
    from ..operations.request import EventSink, Request
    from ..operations.spec import OperationSpec


def refusal_of(access: Access, request: Request, spec: OperationSpec) -> Failure | None:
    """Why this caller may not make this call; None where it may. Nothing of the params is read for it."""
    if not access.unrestricted:
        refusal = attempt_for(request, lambda: access.refusal(spec.access, request.metadata), step="identity.resolve")
        if isinstance(refusal, Raised):
            return provider_failed(request, refusal.exc)
        if refusal is not None:
            return refusal
    return None if spec.admits is None else spec.admits(request.metadata)


def provider_failed(request: Request, exc: BaseException) -> Internal:
    """Return the failure of a call whose caller the identity provider could not name. The exception may hold the credential."""
    log.error(
        "identity.failed",
        method=request.method,
        id=request.id,
        error=exc.error if isinstance(exc, ProviderFailed) else type_name(exc),
    )
    return Internal()


T = TypeVar("T")

_encode: Final = json_encoder()

_END: Final = object()
"""The result of `anext` for a generator that has ended."""

_DEBUGGER_HINT: Final = "call breakpoint(), and start the daemon with --debug"
"""For `pdb.set_trace()` in a handler: it reads stdin, which is the null device there, and gives up with `BdbQuit`."""


def group_of(request: Request) -> Hashable:
    """Which calls must not run beside this one: those with an equal key; None where all may. Never raises: a call whose
    params can't be decoded has no key, and is told why when its turn comes."""
    spec = request.spec
    if spec.concurrency_group is None:
        return None
    if spec.concurrency_group is True:
        return spec.name
    if isinstance(spec.concurrency_group, ClientGroup):
        return spec.concurrency_group, request.backlog
    outer, INLINE.call = INLINE.call, request  # classes of the app may log while they are decoded
    try:
        arguments = _arguments(request)
        if not request.large:  # kept for its turn; of a large body nothing is, or it would count twice
            request.arguments = arguments
        return spec.group_of(arguments)
    except BaseException:  # noqa: BLE001 - the boundary: decoding may run the app's own `__post_init__`
        return None
    finally:
        INLINE.call = outer
        if INLINE.printed:
            end_lines()


def _arguments(request: Request) -> Arguments:
    given = request.arguments
    return request.spec.input.decode(request.params, request.prefix) if given is None else given


def run(request: Request, context: Context) -> Outcome:
    """Decode the params, call a handler that is no coroutine, encode the result. Never raises.

    The handler runs in context variables of its own.
    """
    spec = request.spec
    variables = copy_context()
    try:
        if request.span is None and INLINE.call is request:  # by which the log names it
            given = request.arguments
            arguments = spec.input.decode(request.params, request.prefix) if given is None else given
            return _encoded(spec, variables.run(spec.invoke, context, arguments))
        return variables.run(_run_named, request, context)
    except BaseException as exc:  # noqa: BLE001 - the boundary: a SystemExit of a handler is a fault like any other
        return request.ended_by or outcome_of(exc, request)
    finally:
        context._returned = True
        if children.in_child:
            children.leave_child()


def _run_named(request: Request, context: Context) -> bytes:
    """Do all of it in the context variables of a request, which this names there."""
    BOUND.set(request)
    spec, given = request.spec, request.arguments
    if request.span is not None:
        request.span.enter()
    arguments = spec.input.decode(request.params, request.prefix) if given is None else given
    return _encoded(spec, spec.invoke(context, arguments))


async def run_async(request: Request, context: Context, memory: MemoryBudget, loop: HandlerLoop) -> Outcome:
    """Run a coroutine handler to its outcome. The outcome of a request that was ended meanwhile is why it was ended."""
    spec, given, variables = request.spec, request.arguments, copy_context()
    try:
        outer, INLINE.call = INLINE.call, request  # classes of the app may log while they are decoded
        try:
            if request.large:
                arguments = _decoded(request, context, memory)
            else:
                arguments = spec.input.decode(request.params, request.prefix) if given is None else given
        finally:
            INLINE.call = outer
            if INLINE.printed:
                end_lines()
        work = spec.invoke(context, arguments)
        variables.run(BOUND.set, request)
        if request.span is not None:
            variables.run(request.span.enter)
        return _encoded(spec, await in_context(work, variables, loop, spec.name))
    except BaseException as exc:  # noqa: BLE001 - the boundary, for the task that hosts the handler too
        variables.run(end_lines)  # the loop may keep them: in a timer that was cancelled
        return request.ended_by or outcome_of(exc, request)
    finally:
        context._returned = True
        if children.in_child:
            children.leave_child()


async def run_stream(
    request: Request, context: Context, stream: EventSink, memory: MemoryBudget, loop: HandlerLoop
) -> Outcome:
    """Run an asynchronous generator to its outcome. Its values go out as events; the outcome says how many."""
    variables = copy_context()
    variables.run(BOUND.set, request)
    if request.span is not None:
        variables.run(request.span.enter)
    try:
        generator = variables.run(_generator, request, context, memory)
        await _send_events(request, generator, variables, stream, loop)
        return b'{"completed":true,"events":%d}' % stream.events
    except BaseException as exc:  # noqa: BLE001 - the boundary, as above
        variables.run(end_lines)
        return request.ended_by or outcome_of(exc, request)
    finally:
        context._returned = True
        if children.in_child:
            children.leave_child()


def _generator(request: Request, context: Context, memory: MemoryBudget) -> Any:  # Any: what it yields
    return request.spec.invoke(context, _decoded(request, context, memory))


def _encoded(spec: OperationSpec, result: object) -> bytes:
    """The result as JSON text. Raises `WrongResult` for what JSON can't represent, and for another type than declared."""
    try:
        encoded = _encode(result)
        if len(encoded) > SMALL and is_plain(result, spec.returns):
            return encoded
        if spec.floats and b"null" in encoded:  # which is what msgspec writes for a number that JSON can't hold
            require_finite(result)
        if spec.output is not None:
            spec.output(encoded)
    except (TypeError, ValueError, RecursionError) as exc:  # `ValidationError` is a `ValueError`
        raise WrongResult(_wrong(spec, result, exc)) from None
    return encoded


def _wrong(spec: OperationSpec, result: object, exc: Exception) -> str:
    verb = "yielded" if spec.kind == "subscription" else "returned"
    if isinstance(result, Coroutine):
        result.close()
        return f"{verb} a coroutine: is an `await` missing?"
    what = f"{verb} {type(result).__qualname__}"
    if isinstance(result, OperationError):
        return f"{what}, which is to be raised: write `raise {type(result).__name__}(…)`"
    if isinstance(exc, msgspec.ValidationError):
        annotated = "" if spec.returns is Any else f", but is annotated {spec.describe_result()}"
        return f"{what}{annotated}: {exc}"
    place = "" if isinstance(exc, RecursionError) else unencodable_member(result)
    return f"{what}: {f'at {place}: ' if place else ''}{exc}"


def _decoded(request: Request, context: Context, memory: MemoryBudget) -> Arguments:
    """The params in decoded form. Of a large body nothing else is kept while the handler runs but the id and the metadata.

    What may last for ever is weighed anew where its handler may not take all members.
    """
    values = _arguments(request)
    if request.large:
        _ = context.progress_token  # read while the params are there
        request.params = None
        if request.limit is None and not request.spec.input.takes_all:
            kept = (
                values_size(values, request.decoded_size) + len(request.id or b"") + values_size((request.metadata,), 0)
            )
            memory.add("requests", kept - request.decoded_size)
            request.decoded_size = kept
    return values


async def _send_events(
    request: Request,
    generator: AsyncGenerator[Any, None],
    variables: Variables,
    stream: EventSink,
    loop: HandlerLoop,
) -> None:
    """Put what the generator yields, but for numbered events that the caller says it has.

    Only the generator runs in these context variables and flushes while it waits. A flush while this task begins to wait
    for room could wake it before it waits, which trio does not allow.
    """
    spec = request.spec
    numbers: _Numbers | None = None
    try:
        while (value := await in_context(anext(generator, _END), variables, loop, spec.name)) is not _END:
            if type(value) is ServerEvent:
                numbers = numbers or _Numbers(request)
                number = _number_of(value)
                if not numbers.is_new(number):
                    await anyio.lowlevel.checkpoint()  # others have a turn
                    continue
                stream.put(_encoded(spec, value.value), number)
            else:
                stream.put(_encoded(spec, value))
            if stream.full or stream.discarded:  # also the moment to let others run, for a producer that never waits
                loop.flush()
                await anyio.lowlevel.checkpoint()
                await stream.wait_for_room()
    finally:
        await in_context(generator.aclose(), variables, loop, spec.name)


class _Numbers:
    """The numbers of one subscription's events, behind the one that its caller has. What is wrong with them is told once."""

    def __init__(self, request: Request) -> None:
        has = last_event_id(request.metadata)
        self._name = request.spec.name
        self._has = self._last = -1 if has is None else has
        self._told = False

    def is_new(self, number: int) -> bool:
        """Whether the caller does not have this event."""
        if number <= self._last and not self._told:
            self._told = True
            if number <= self._has:
                log.warning("events.repeated", method=self._name, hint=_REPEATED_HINT)
            else:
                log.warning("events.misnumbered", method=self._name, hint=_MISNUMBERED_HINT)
        self._last = max(number, self._has)
        return number > self._has


_REPEATED_HINT: Final = "ctx.last_event_id is the number behind which the caller goes on; what it has is left out"
_MISNUMBERED_HINT: Final = "numbers must rise, else no caller can resume"


def _number_of(event: ServerEvent[Any]) -> int:
    if type(event.id) is not int or event.id < 0:
        raise WrongResult("yielded a ServerEvent whose id is no integer of 0 or more")
    return event.id


class Raised(msgspec.Struct, frozen=True):
    """An exception of the app's own code in place of a value."""

    exc: BaseException


APP_LOOP: ContextVar[HandlerLoop | None] = ContextVar("discreet_app_loop", default=None)
"""How the app's own code beside its handlers is watched: set before the tasks start that call it."""


async def attempt(work: Callable[[], Awaitable[T]], *, step: str = "") -> T | Raised:
    """Await the app's own code; its value, or what it raised. `step` is what the log calls it where it blocks the loop.

    Cancellation from an enclosing scope passes through. A cancellation that the code caused itself, such as that of a task
    which it awaits, is returned like any other exception. Scopes that it left open are closed.
    """
    loop = APP_LOOP.get() if step else None
    if loop is None:
        return await attempt_here(work, step, guard_task())
    return await attempt_here(lambda: in_context(_awaited(work), copy_context(), loop, step), step, guard_task())


async def attempt_here(work: Callable[[], Awaitable[T]], step: str, guard: AsyncioGuard | TrioGuard) -> T | Raised:
    """Do as `attempt`, in the context variables that are there. `guard` is that of the running task. What it does to the loop is
    watched by who runs this."""
    try:
        try:
            return await work()
        finally:
            if children.in_child:
                children.leave_child(exc_info()[1])
            if guard.disturbed():
                await guard.restore(step)
            del guard  # a traceback may keep this frame, and the guard its task
    except BaseException as exc:
        if not _cancelled_from_outside():
            return Raised(_single(exc))

        _, beside = BaseExceptionGroup("", [exc]).split(
            (anyio.get_cancelled_exc_class(), GeneratorExit, KeyboardInterrupt)
        )
        if beside is None:
            raise
        return Raised(_single(beside))  # what its clean-up raised, on trio in one group with the cancellation


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


def _cancelled_from_outside() -> bool:
    """Whether a cancel scope that encloses the running task has been cancelled."""
    return anyio.current_effective_deadline() == -math.inf


def attempt_now(work: Callable[[], T], *, step: str = "") -> T | Raised:
    """Request code that is no coroutine; its value, or what it raised. With a `step` it is the app's own, and the running task is
    out of its reach."""
    loop = APP_LOOP.get() if step else None
    try:
        return work() if loop is None else out_of_task(lambda: loop.watch.marked(step, work))
    except BaseException as exc:  # noqa: BLE001 - the boundary, as above
        return Raised(_single(exc))
    finally:
        if children.in_child:
            children.leave_child(exc_info()[1])


def attempt_for(request: Request, work: Callable[[], T], *, step: str) -> T | Raised:
    """Do as `attempt_now`, for a request that the log then names."""
    variables = copy_context()
    variables.run(BOUND.set, request)
    return variables.run(attempt_now, work, step=step)


def declared(exc: OperationError) -> Failure | None:
    """The failure that a typed error of an agent stands for; None where its facts are not what it declares."""
    try:
        return failure_of(exc, [type(exc)])
    except BaseException:  # noqa: BLE001 - as in `outcome_of`
        return None


def outcome_of(exc: BaseException, request: Request) -> Failure:
    """The failure that an exception of this operation stands for. Its class may be such that looking at it raises."""
    if children.in_child:
        children.leave_child(exc)
    try:
        return _outcome_of(exc, request)
    except BaseException:  # noqa: BLE001 - the boundary, as above
        _diagnose(request, problem=f"it raised {type_name(exc)}, which can't be looked at")
        return Internal()


def _outcome_of(exc: BaseException, request: Request) -> Failure:
    found = _single(exc)
    if isinstance(found, MemoryError):
        reserve.free()
    if isinstance(found, FailureError):
        return found.failure
    if isinstance(found, CallFailed) and isinstance(found.failure, Internal):
        return Internal()  # where it began it was logged
    if isinstance(found, OperationError):
        try:
            failure = failure_of(found, request.spec.errors)
        except msgspec.ValidationError as fault:
            problem = f"the details of {type_name(found)} are not what it declares: {fault}"
            _diagnose(request, problem=problem, exc=exc)
            return Internal()
        except BaseException as fault:  # noqa: BLE001 - details that JSON can't represent, or the app's `__post_init__`
            exc = fault
        else:
            if isinstance(failure, Internal):
                declare = f"declare it: errors=[{type_name(found)}]"
                hint = "raise an error of your own in its place" if isinstance(found, ExternalError) else declare
                _diagnose(request, undeclared=failure.code, hint=hint, exc=exc)
            return failure
    if isinstance(found, WrongResult):
        _diagnose(request, handler=request.spec.source, problem=str(found))
        return Internal()
    fields = {"hint": _DEBUGGER_HINT} if type(found).__module__ == "bdb" else {}
    _diagnose(request, **fields, exc=exc)
    return Internal()


def _diagnose(request: Request, **fields: object) -> None:
    request.diagnosed = True
    traced = {} if request.span is None else request.span.log_fields
    named: dict[str, object] = {}
    add_names(named, request)
    named["method"] = request.spec.name
    log.error("handler.failed", **named, **fields, **traced)


def _single(exc: BaseException) -> BaseException:
    """The exception in a group of exactly one, however deep; any other exception as it is."""
    while issubclass(type(exc), BaseExceptionGroup) and len(found := _exceptions_of(exc)) == 1:
        exc = found[0]
    return exc


_exceptions_of: Final[Callable[[Any], Sequence[BaseException]]] = BaseExceptionGroup.__dict__[
    "exceptions"
].__get__  # a subclass may have its own
