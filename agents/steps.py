"""Runs the steps of an execution: what a step returned is stored with its task, and an execution that goes on after a crash gets
it from there. Knows nothing of who executes.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, final, get_type_hints  # Any: functions and results are of any type

import msgspec
from msgspec import UNSET

from ..a2a.errors import InvalidStateTransition
from ..a2a.task import size_of_step
from ..a2a.types import Message, Step, StepStored, TaskState
from ..daemon.dispatch.execution import Raised, attempt_now
from ..daemon.logs import log
from ..daemon.memory import SMALL
from ..daemon.operations.json_types import require_finite, unencodable_member
from ..daemon.operations.spec import with_code
from ..errors.decoders import DECODE_ERRORS, decoder_for
from ..errors.redaction.safe_call import type_name
from ..lazy import anyio
from .live_task import LiveTask, raise_if_lost, wait_committed

MAX_STEP_BYTES: Final = 1024 * 1024
"""The result of one step, as JSON text."""

MAX_STEPS_BYTES: Final = 8 * 1024 * 1024
"""All steps of one execution, with some hundred bytes for each. Each snapshot of the task holds them."""

MAX_STEPS: Final = 1000
"""Steps of one execution."""

MAX_NAME_CHARS: Final = 200
"""The name of a step."""

PARK_SECONDS: Final = 5.0
"""How long an execution that has asked may take to be cancelled there."""

MAX_ATTEMPTS: Final = 1000
"""Each of them is stored."""

MAX_THREADS: Final = 64
"""Plain functions that run as steps of one agent at the same time; more wait for a thread. So many more may go on although their
steps were cancelled."""

THREAD_POLL_SECONDS: Final = 0.1
"""How often a step that waits for a thread looks whether a function has ended whose step was cancelled."""


class StepError(RuntimeError):
    """A step that can't be run, or whose result can't be stored. `step` is its name; the text says what to change."""

    def __init__(self, step: str, problem: str) -> None:
        super().__init__(f"step {step!r}: {problem}")
        self.step = step


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """How a step that raises is tried again: `attempts` times at most, the first one included.

    The pause before the second attempt takes `first_pause` seconds, each later one `factor` times as long as the one before, up
    to `longest_pause`. Exceptions of other classes than `on` are raised at once. Raises `ValueError` for numbers that make no
    sense.
    """

    attempts: int = 3
    first_pause: float = 1.0
    factor: float = 2.0
    longest_pause: float = 60.0
    on: tuple[type[Exception], ...] = (Exception,)

    def __post_init__(self) -> None:
        if not 1 <= self.attempts <= MAX_ATTEMPTS:
            raise ValueError(f"attempts is a number from 1 to {MAX_ATTEMPTS}")
        if not (
            0 <= self.first_pause < math.inf and 0 <= self.longest_pause < math.inf and 1 <= self.factor < math.inf
        ):
            raise ValueError("first_pause and longest_pause are seconds from 0, and factor is a number from 1")
        if not (
            isinstance(self.on, tuple)
            and all(isinstance(each, type) and issubclass(each, Exception) for each in self.on)
        ):
            raise ValueError("on is a tuple of classes of exceptions, such as (OSError,)")

    def pause_after(self, failures: int) -> float:
        """Seconds before the next attempt."""
        try:
            return min(self.first_pause * self.factor ** (failures - 1), self.longest_pause)
        except OverflowError:
            return self.longest_pause


_ONCE: Final = Retry(attempts=1)


@final
class StepThreads:
    """Runs plain functions in threads, at most `MAX_THREADS` at once. A function whose step is cancelled goes on, as nothing can
    stop it. Where as many go on so, the next one waits until one of them has ended."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(MAX_THREADS)
        self._abandoned: list[_ThreadCall] = []

    async def run(self, call: _ThreadCall) -> object:
        """Return what the call returns. If this is cancelled, its result is dropped."""
        await self._wait_for_abandoned(call)
        try:
            (done,) = await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=self._limiter)
        finally:
            if call.runs:
                self._abandoned.append(call)
                log.warning("step.abandoned", task=call.task_id, step=call.name, threads=self._count())
        return done

    async def _wait_for_abandoned(self, call: _ThreadCall) -> None:
        if self._count() >= MAX_THREADS:
            log.warning("step.no_thread", task=call.task_id, step=call.name, threads=MAX_THREADS)
        while self._count() >= MAX_THREADS:  # threads that nothing waits for tell nothing when they end
            await anyio.sleep(THREAD_POLL_SECONDS)

    def _count(self) -> int:
        self._abandoned = [each for each in self._abandoned if each.runs]
        return len(self._abandoned)


@final
class _ThreadCall:
    """A call of a plain function for a step. `runs` tells, in any thread, whether it has begun and has not ended."""

    def __init__(self, task_id: str, name: str, call: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.task_id = task_id
        self.name = name
        self.runs = False
        self._call = call
        self._args = args

    def __call__(self) -> tuple[object]:
        """Return its outcome, in a tuple: trio refuses a coroutine as the result of a thread."""
        self.runs = True
        try:
            return (attempt_now(lambda: self._call(*self._args)),)
        finally:
            self.runs = False


@final
class StepLog:
    """The steps of one execution. `park(due)` cancels the execution, and has the task executed again at this time, in seconds
    since 1970, or for None with the answer to its question."""

    def __init__(self, live: LiveTask, threads: StepThreads, park: Callable[[float | None], None]) -> None:
        self._live = live
        self._park = park
        self._threads = threads
        self._used: set[str] = set()

    def _find(self, name: str, fits: Callable[[Step], bool]) -> Step | None:
        """The stored step of this name. Raises `StepError` where it does not fit, or no step can be stored, and
        `InvalidStateTransition` where the task has ended."""
        live = self._live
        raise_if_lost(live)
        if live.ended:
            raise InvalidStateTransition(current=live.state.value, target=TaskState.WORKING.value)
        if not (live.waiting and live.waiting[0].begun):
            raise StepError(
                name, "the execution has stopped its task before: what it stores now could not be found again"
            )
        step = live.find_step(name)
        if step is not None and not fits(step):
            raise StepError(name, "is stored as a step of another kind, by another version of the agent")
        return step

    def _take_name(self, name: str) -> None:
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARS:
            raise StepError(str(name)[:MAX_NAME_CHARS], f"the name is a text of 1 to {MAX_NAME_CHARS} characters")
        if any("\ud800" <= char <= "\udfff" for char in name):
            raise StepError(ascii(name), "the name is Unicode text, without lone surrogates")
        if name in self._used:
            raise StepError(name, "this execution has a step of this name already; number them, as in f'pay {number}'")
        self._used.add(name)

    async def run(
        self, name: str, call: Callable[..., Any], args: tuple[Any, ...], returns: object, retry: Retry | None
    ) -> Any:
        """See `TaskEvents.step`."""
        self._take_name(name)
        try:
            decode = _decoder_of(name, call, returns)
            stored = self._find(name, lambda step: step.result is not None or step.failures > 0)
            if stored is not None and stored.result is not None:
                return _decoded(
                    name, stored.result, decode, "is stored as another type, by another version of the agent"
                )
            value = await self._try(name, call, args, retry or _ONCE, stored)
            encoded = _encoded(name, value)
            result = _decoded(
                name, encoded, decode, f"returned {type(value).__qualname__}, which is not what is declared"
            )
            await self._store(Step(name, encoded))
        except BaseException:
            self._used.discard(name)  # nothing is stored: it may be tried again
            raise
        return result

    async def _try(
        self, name: str, call: Callable[..., Any], args: tuple[Any, ...], retry: Retry, stored: Step | None
    ) -> object:
        """Raises what the last attempt raises. Where a crash cut the attempts off, they go on with the next."""
        failures, due = (0, 0.0) if stored is None else (stored.failures, stored.due)
        while True:
            await anyio.sleep(max(0.0, min(due - time.time(), retry.longest_pause)))  # the clock may have been set
            try:
                return await self._value_of(name, call, args)
            except retry.on as exc:
                failures += 1
                if failures >= retry.attempts or isinstance(exc, StepError):
                    raise
                log.warning("step.failed", task=self._live.id, step=name, attempt=failures, error=type_name(exc))
            due = time.time() + retry.pause_after(failures)
            await self._store(Step(name, None, failures, due))

    async def _value_of(self, name: str, call: Callable[..., Any], args: tuple[Any, ...]) -> object:
        """What the function returns or raises. A thread that is cancelled runs on, and its result is dropped."""
        if inspect.iscoroutinefunction(with_code(call)):
            return await call(*args)
        done = await self._threads.run(_ThreadCall(self._live.id, name, call, args))
        if isinstance(done, Raised):
            raise done.exc
        if isinstance(done, Coroutine):
            done.close()
            raise StepError(name, "returned a coroutine: give it the `async def` function itself, and its arguments")
        return done

    async def sleep(self, name: str, due: float) -> None:
        """See `TaskEvents.sleep_until`."""
        self._take_name(name)
        stored = self._find(name, lambda step: step.due > 0 and not step.failures)
        if stored is None:
            await self._store(Step(name, due=due))
        else:
            due = stored.due
        while (left := due - time.time()) > 0:
            self._park(due)
            await anyio.sleep(left)  # is cancelled now, but in a shielded scope

    async def ask(self, name: str, publish: Callable[[], Awaitable[None]]) -> Message:
        """Return the message that answers the question. If there is none, `publish()` asks it. See `TaskEvents.ask`."""
        self._take_name(name)
        stored = self._find(name, lambda step: step.answer is not None)
        if stored is not None and stored.answer is not None:
            return self._live.message(stored.answer)
        await publish()
        await wait_committed(self._live)
        self._park(None)
        await anyio.sleep(PARK_SECONDS)
        raise StepError(name, "the execution can't be left here: it asks in a shielded scope, or in a task of its own")

    async def _store(self, step: Step) -> None:
        """Return when the store has the step. Raises `FailureError` or `TaskConflict` where the task is lost."""
        live, size = self._live, size_of_step(step)
        if len(live.waiting[0].steps) >= MAX_STEPS and live.find_step(step.name) is None:
            raise StepError(step.name, f"an execution has at most {MAX_STEPS} steps: join some, or begin another task")
        if live.steps_size + size > MAX_STEPS_BYTES:
            raise StepError(step.name, f"the steps of an execution take at most {MAX_STEPS_BYTES} bytes together")
        live.publish(StepStored(step), limited=size > SMALL)
        await wait_committed(self._live)


def _decoder_of(name: str, call: Callable[..., Any], returns: object) -> Callable[[bytes], Any]:
    """Return what decodes a result. Raises `StepError` where the type is unknown or is none that msgspec decodes."""
    if not callable(call):
        raise StepError(
            name, f"takes a function and its arguments, not {type(call).__qualname__}: write step(name, f, x)"
        )
    if returns is UNSET:
        try:
            returns = get_type_hints(with_code(call), include_extras=True).get("return", Any)
        except (NameError, TypeError, AttributeError):  # names of TYPE_CHECKING, and functions of C
            if getattr(with_code(call), "__annotations__", None):
                raise StepError(name, "its annotations can't be read here: give the type as returns=") from None
            returns = Any
    try:
        return decoder_for(returns)
    except (TypeError, ValueError, NameError):
        raise StepError(name, "JSON can't be decoded to its type; give another one as returns=") from None


def _encoded(name: str, value: object) -> bytes:
    try:
        encoded = msgspec.json.encode(value)
        if b"null" in encoded:  # which is what msgspec writes for a number that JSON can't hold
            require_finite(value)
    except (TypeError, ValueError, RecursionError) as exc:
        place = "" if isinstance(exc, RecursionError) else unencodable_member(value)
        where = f" (at {place})" if place else ""
        raise StepError(name, f"returned {type(value).__qualname__}, which can't be written as JSON{where}") from None
    if len(encoded) > MAX_STEP_BYTES:
        raise StepError(name, f"returned {len(encoded)} bytes; at most {MAX_STEP_BYTES} are stored: return a reference")
    return encoded


def _decoded(name: str, encoded: bytes, decode: Callable[[bytes], Any], problem: str) -> Any:
    try:
        return decode(encoded)
    except DECODE_ERRORS:
        raise StepError(name, problem) from None
