"""Where a handler's outcome becomes an answer. The only place that catches everything.

Whatever a handler does ends here as result bytes or as a `Failure`; nothing of an exception's text goes on to the
wire, and what is unexpected is logged with its traceback.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from ...errors.exceptions import FailureError, OperationError
from ...errors.failures import Failure, Internal
from ...errors.wire import failure_of
from ..logs import log
from .task_pool import in_context

if TYPE_CHECKING:
    from ..connection.streams import Sink
    from ..operations.context import Context
    from ..operations.spec import OperationSpec
    from ..rpc.envelope import Call
    from .request import Request
    from .router import Route, Router

_END: Final = object()
"""What a generator that has ended gives instead of its next value."""

Outcome: TypeAlias = bytes | Failure
"""The result's JSON text, or why there is none."""


class Completed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a subscription that has come to its end."""

    completed: bool = True
    events: int


def route(router: Router, call: Call) -> Route | Failure:
    """Where a call goes. Never raises, whatever an identity provider does; its exception may hold the credential, so
    that only the exception's type is logged."""
    try:
        return router.route(call)
    except Exception as exc:  # noqa: BLE001 - the boundary: a provider is the app's own code
        log.error("identity.failed", method=call.method, id=call.id, error=type(exc).__name__)
        return Internal()


def lane_of(spec: OperationSpec, call: Call) -> Hashable:
    """Which calls must not run beside this one. Never raises: what can't be decoded is in no lane, and is told why when
    its turn comes."""
    try:
        return spec.group_of(spec.input.decode(call.params))
    except Exception:  # noqa: BLE001 - the boundary: decoding may run the app's own `__post_init__`
        return None


def run(spec: OperationSpec, call: Call, context: Context) -> Outcome:
    """Decode, call and encode a handler that is no coroutine, in a context of its own. Never raises."""
    try:
        args = spec.input.decode(call.params, call.prefix)
        return spec.encode_output(copy_context().run(spec.invoke, context, args))
    except BaseException as exc:  # noqa: BLE001 - the boundary: a SystemExit of a handler is a fault like any other
        return context.ended_by or outcome_of(exc, spec, call)


async def run_async(request: Request, context: Context, before_wait: Callable[[], None]) -> Outcome:
    """The same for a coroutine. Never raises: of a request that was ended from outside nothing is left to say."""
    spec, call = request.spec, request.call
    try:
        work = spec.invoke(context, spec.input.decode(call.params, call.prefix))
        return spec.encode_output(await in_context(work, copy_context(), before_wait))
    except BaseException as exc:  # noqa: BLE001 - the boundary, for the task that hosts the handler too
        return request.ended_by or outcome_of(exc, spec, call)


async def run_stream(request: Request, context: Context, stream: Sink, before_wait: Callable[[], None]) -> Outcome:
    """The same for an asynchronous generator, whose values go out as events; the outcome counts them."""
    spec, call = request.spec, request.call
    try:
        generator = spec.invoke(context, spec.input.decode(call.params, call.prefix))
        await _send_events(spec, generator, stream, before_wait)
        return msgspec.json.encode(Completed(events=stream.events))
    except BaseException as exc:  # noqa: BLE001 - the boundary, as above
        return request.ended_by or outcome_of(exc, spec, call)


async def _send_events(
    spec: OperationSpec, generator: AsyncGenerator[Any, None], stream: Sink, before_wait: Callable[[], None]
) -> None:
    """Put what the generator yields. Only the generator is run in a context of its own, and flushes as it waits: to
    flush while this task goes to sleep for room could wake it before it sleeps, which trio does not survive."""
    from anyio.lowlevel import checkpoint  # late: the first replies leave without an event loop

    variables = copy_context()
    try:
        while (value := await in_context(anext(generator, _END), variables, before_wait)) is not _END:
            stream.put(spec.encode_output(value))
            if stream.full or stream.discarded:  # also the moment to let others run, for a producer that never waits
                before_wait()
                await checkpoint()
                await stream.wait_for_room()
    finally:
        await in_context(generator.aclose(), variables, before_wait)


async def attempt(work: Callable[[], Awaitable[object]]) -> BaseException | None:
    """What an agent's own code raised, if it did, be it as early as when it was called. Cancellation from around here
    passes; one of its own making, such as that of a task which it awaits, is a fault like any other."""
    try:
        await work()
    except BaseException as exc:
        if not _cancelled_from_outside():
            _forget_own_cancellation()
            return _single(exc)
        from anyio import get_cancelled_exc_class  # late: few are cancelled

        _, beside = BaseExceptionGroup("", [exc]).split((get_cancelled_exc_class(), GeneratorExit, KeyboardInterrupt))
        if beside is None:
            raise
        return _single(beside)  # what its clean-up raised, on trio in one group with the cancellation
    return None


def _cancelled_from_outside() -> bool:
    """Whether a cancel scope around the running task has been cancelled."""
    import anyio  # late: the first replies leave without an event loop

    return anyio.current_effective_deadline() == -math.inf


def _forget_own_cancellation() -> None:
    """Code that cancels the very task it runs in has cancelled nothing but itself."""
    from anyio import get_cancelled_exc_class  # late, as above

    if get_cancelled_exc_class().__module__ != "asyncio.exceptions":  # trio has nothing of the kind
        return
    from asyncio import current_task

    task = current_task()
    while task is not None and task.cancelling():
        task.uncancel()


def attempt_now(work: Callable[[], object]) -> BaseException | None:
    """The same for what is no coroutine."""
    try:
        work()
    except BaseException as exc:  # noqa: BLE001 - the boundary, as above
        return _single(exc)
    return None


def declared(exc: OperationError) -> Failure | None:
    """The failure that a typed error of an agent stands for; None where its facts are not what it declares."""
    try:
        return failure_of(exc, [type(exc)])
    except Exception:  # noqa: BLE001 - as in `outcome_of`
        return None


def outcome_of(exc: BaseException, spec: OperationSpec, call: Call) -> Failure:
    """The failure that an exception of this operation stands for."""
    found = _single(exc)
    if isinstance(found, FailureError):
        return found.failure
    if isinstance(found, OperationError):
        try:
            return failure_of(found, spec.errors)
        except Exception as fault:  # noqa: BLE001 - details that the declaration does not allow
            exc = fault
    log.error("handler.failed", method=spec.name, id=call.id, exc=exc)
    return Internal()


def _single(exc: BaseException) -> BaseException:
    """What a group of exactly one holds, however deep; anything else is itself."""
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    return exc
