"""One request on its way through the daemon: what was asked, who asked, and how far it has got; and the counts of those that
have ended."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from math import frexp
from time import monotonic
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeAlias, TypeVar, final

import msgspec

from ...errors.codes import row_of
from ...errors.failures import Failure
from ...lazy import anyio
from ..memory import SMALL
from .backlog import LOOP

if TYPE_CHECKING:
    import threading

    from ..operations.context import ContextBackend, CurrentRequest, Endable
    from ..operations.identity import Identity
    from ..operations.spec import OperationSpec
    from ..rpc.envelope import Call
    from .backlog import Backlog


# The requests that wait for their answer. The only place that knows, and the reason why none gets two.
#
# A request is admitted once and settled once. The first to settle it (the handler's result, a cancel, a deadline, the end
# of the drain window) gives the answer. Later ones are told that there is nothing left to answer.


BACKSLASH: Final = 0x5C


class Answerable(Protocol):
    """What the table holds: a request that knows its id's key and whether it was answered."""

    key: bytes
    answered: bool


def id_key(raw: bytes) -> bytes:
    """The key of an id's JSON text.

    Texts that spell one string differently share a key. Numbers are compared as they are written: `1` and `1.0` are
    two ids here, as the reply to each echoes its own spelling.
    """
    if BACKSLASH in raw:
        return msgspec.json.encode(msgspec.json.decode(raw))
    return raw


R = TypeVar("R", bound=Answerable)


@final
class Inflight(Generic[R]):
    """Requests by id, from the moment they are admitted until they are answered."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: Final[dict[bytes, R]] = {}
        """Those that wait now, by their keys. A request whose key is not among them is admitted by adding it."""

    def __len__(self) -> int:
        return len(self.waiting)

    def __iter__(self) -> Iterator[R]:
        """Those that wait now."""
        return iter([*self.waiting.values()])

    def settle(self, request: R, *, hold: bool = False) -> bool:
        """Take the right to answer; True exactly once per admitted request.

        With `hold` the answer leaves later, and the id stays in flight until `release`.
        """
        if request.answered:
            return False
        request.answered = True
        if not hold:
            del self.waiting[request.key]
        return True

    def release(self, request: R) -> None:
        """The answer has left: the id may be used again."""
        del self.waiting[request.key]

    def find(self, key: bytes) -> R | None:
        """The request that waits under this key."""
        return self.waiting.get(key)


Outcome: TypeAlias = bytes | Failure
"""The result's JSON text, or why there is none."""


class EventSink(Protocol):
    """Where the events of one subscription go. `events` counts them."""

    events: int
    discarded: bool

    @property
    def full(self) -> bool: ...

    def put(self, value: bytes, number: int | None = None) -> None:
        """Take the next event; `value` is a JSON text. `number` is its own in the log that it comes from."""
        ...

    async def wait_for_room(self) -> None:
        """Return when it is not full any more."""
        ...


class Requester(Protocol):
    """Who made a request and gets its outcome: a client, or a handler that calls another operation."""

    def deliver(self, request: Request, outcome: Outcome) -> None:
        """Take the one outcome of the request. Called on the loop, exactly once."""
        ...

    def sink_of(self, request: Request) -> EventSink:
        """Where the events of a subscription go. Called once, when its handler begins."""
        ...


class Client(msgspec.Struct, frozen=True, eq=False):
    """A connection whose requests are scheduled.

    `flush()` sends what was posted. It is called before a task waits, so that many replies share one write.
    `on_progress()` is called when requests have started or ended: there may be room for more.
    """

    flush: Callable[[], None]
    on_progress: Callable[[], None]


class Request(msgspec.Struct, eq=False):
    """A call and its operation. One object per request that can't be answered at once.

    `backlog` is the queue of the client that sent it; None for a call between operations. `parent` made the call and waits
    for it, where it is one between operations that ends with its caller. Its handler's context stands on `context_backend`.

    `identity` is who calls, where that is another operation, or known for another reason.

    `decoded_size` is how many bytes of the memory budget it takes, once it runs in decoded form.

    `ended_by` is why the outcome was delivered before the handler had one (cancelled, timed out, unavailable): the
    handler's own outcome is then dropped. It is set on the loop and read in worker threads.
    """

    call: Call
    spec: OperationSpec
    requester: Requester
    context_backend: ContextBackend
    backlog: Backlog[Request] | None = None
    key: bytes = b""
    answered: bool = False
    since: float = 0.0
    """When it came."""
    ended_by: Failure | None = None
    limit: float | None = None
    deadline: float | None = None
    group: object = None
    scope: anyio.CancelScope | None = None
    stopped: threading.Event | None = None
    children: list[Endable] | None = None
    parent: CurrentRequest | None = None
    depth: int = 0
    decoded_size: int = 0
    identity: Identity | None = None
    pool: int = LOOP
    withdraw: Callable[[Request], None] | None = None
    """Takes it out of the concurrency group in which it waits for its turn."""
    behind: list[Request] | None = None
    """For a notification: the requests that wait until it was handled."""
    size: int = 0
    """Bytes that are held while the request waits."""
    large: bool = False
    """Whether its decoded form may take so much that the memory budget is asked before it runs."""
    takes_slot: bool = False
    """Whether it counts among those of its pool that run at the same time.

    Subscriptions don't, nor what only waits, or a handful of watchers would stop all calls. Calls between operations
    don't either: their caller has a slot already, and would wait for ever for a second one.
    """

    def __post_init__(self) -> None:
        call, spec = self.call, self.spec
        if call.id is None:
            self.answered = True
        else:
            self.key = id_key(call.id) if BACKSLASH in call.id else call.id
        self.since = monotonic()
        self.size = call.size
        self.large = call.size > SMALL
        self.takes_slot = self.backlog is not None and spec.mode != "stream" and not spec.only_waits

    @property
    def name(self) -> str:
        """The operation's name."""
        return self.spec.name

    def is_inside(self, group: object) -> bool:
        """Whether this call was made, directly or not, by one of that concurrency group, which waits for it."""
        caller = self.parent
        while caller is not None and caller.group != group:
            caller = caller.parent
        return caller is not None

    def adopt(self, child: Endable) -> None:
        """From now on the child ends when this request is ended, at once if it has been."""
        if self.children is None:
            self.children = []
        self.children.append(child)
        if self.ended_by is not None:
            child.end(self.ended_by)

    def release(self, child: Endable) -> None:
        """The child has ended by itself."""
        if self.children is not None:
            self.children.remove(child)

    def stop_event(self) -> threading.Event:
        """An event that is set when the request is ended. For the worker thread that runs it."""
        if self.stopped is None:
            import threading  # late: only handlers that wait in threads need it

            self.stopped = threading.Event()
            if self.ended_by is not None:  # ended between the two lines above
                self.stopped.set()
        return self.stopped

    def end(self, failure: Failure) -> None:
        """Deliver a failure now and tell the handler to stop, and its children too. Only the first reason counts."""
        ending: list[Endable] = [self]
        while ending:  # no recursion: calls may be nested as deep as a setting allows
            part = ending.pop()
            if isinstance(part, Request):
                ending += part._end_alone(failure)
            else:
                part.end(failure)

    def _end_alone(self, failure: Failure) -> list[Endable]:
        """The children, which are to be ended next."""
        if self.ended_by is not None:
            return []
        self.ended_by = failure
        self.requester.deliver(self, failure)
        if self.withdraw is not None:
            self.withdraw(self)
        if self.scope is not None:
            self.scope.cancel()
        if self.stopped is not None:
            self.stopped.set()
        return [*self.children] if self.children else []


class RequestCounts(Protocol):
    """What is told of each request of a client when it has ended: `RequestMetrics`, or what stands before it."""

    @property
    def since(self) -> float: ...

    @since.setter
    def since(self, seconds: float) -> None: ...

    @property
    def inline(self) -> list[str]: ...

    def end_read(self) -> None: ...

    def inline_failed(self, spec: OperationSpec, failure: Failure) -> None: ...

    def ended(self, request: Request, outcome: Outcome) -> None: ...

    def refused(self, method: str | None, failure: Failure) -> None: ...


OTHER: Final = "other"
"""Stands for every method that is not declared, and for codes beyond `MAX_CODES`: what callers write is never counted by name."""

SHORTEST: Final = 1e-9
"""Stands for no time at all, which has no power of two: a coarse clock does not move during a short call."""

MAX_RECORDED: Final = 64
"""How many durations are kept before they are sorted into powers of two: several at once take a fraction of the time."""

MAX_CODES: Final = 64
"""Codes that are counted by name for one method. An operation declares a few."""


@final
class Durations:
    """A histogram of seconds: how many lie between two powers of two, and their sum.

    `recorded` are the last ones, which `settle` sorts in. It must be called when there are `MAX_RECORDED`, and before reading.
    `exponents[n]` counts those of at least `2 ** (n - 1)` and less than `2 ** n` seconds.
    """

    __slots__ = ("exponents", "recorded", "seconds")

    def __init__(self) -> None:
        self.recorded: list[float] = []
        self.exponents: defaultdict[int, int] = defaultdict(int)
        self.seconds = 0.0

    def add(self, seconds: float, count: int = 1) -> None:
        """Count something that took so long, or several that took as long each."""
        self.exponents[frexp(seconds or SHORTEST)[1]] += count
        self.seconds += count * seconds

    def settle(self) -> None:
        if not self.recorded:
            return
        from bisect import bisect_left  # late: not before the first answers

        recorded = self.recorded
        recorded.sort()
        counted, last = 0, frexp(recorded[-1] or SHORTEST)[1]
        for exponent in range(frexp(recorded[0] or SHORTEST)[1], last):
            shorter = bisect_left(recorded, 2.0**exponent)
            self.exponents[exponent] += shorter - counted
            counted = shorter
        self.exponents[last] += len(recorded) - counted
        self.seconds += sum(recorded)
        recorded.clear()

    def include(self, others: Durations) -> None:
        others.settle()
        for exponent, count in others.exponents.items():
            self.exponents[exponent] += count
        self.seconds += others.seconds

    @property
    def count(self) -> int:
        return sum(self.exponents.values()) + len(self.recorded)


@final
class MethodMetrics:
    """The requests for one method. `failed` of those with a duration have a code; `codes` counts these, and what has no
    duration: what was refused, and subscriptions."""

    __slots__ = ("codes", "durations", "failed")

    def __init__(self) -> None:
        self.durations = Durations()
        self.failed = 0
        self.codes: dict[str, int] = {}

    def count(self, code: str) -> None:
        if code not in self.codes and len(self.codes) >= MAX_CODES:
            code = OTHER
        self.codes[code] = self.codes.get(code, 0) + 1


@final
class RequestMetrics:
    """What became of the requests of one transport, by method. Used on the loop's thread only.

    A duration is the time from when a request was read until its outcome was there. `inline` names the calls that were answered
    while they were read, since the time `since`. Their answers are sent together, after `end_read`, and all have the duration of
    the whole: a clock for each would cost as much as a small handler.
    """

    __slots__ = ("inline", "methods", "since")

    def __init__(self) -> None:
        self.methods: defaultdict[str, MethodMetrics] = defaultdict(MethodMetrics)
        self.inline: list[str] = []
        self.since = 0.0

    def end_read(self) -> None:
        """The calls in `inline` are answered."""
        elapsed, inline = monotonic() - self.since, self.inline
        if len(inline) == 1:  # as most clients send them, and worth a way of its own
            durations = self.methods[inline.pop()].durations
            durations.recorded.append(elapsed)
            if len(durations.recorded) >= MAX_RECORDED:
                durations.settle()
            return
        for method, count in Counter(inline).items():
            self.methods[method].durations.add(elapsed, count)
        inline.clear()

    def inline_failed(self, spec: OperationSpec, failure: Failure) -> None:
        """A call failed that is in `inline`."""
        method = self.methods[spec.name]
        method.failed += 1
        method.count(code_of(failure))

    def ended(self, request: Request, outcome: Outcome) -> None:
        """A request that was queued has its outcome. Subscriptions have no duration: they last as long as their client likes."""
        spec = request.spec
        method = self.methods[spec.name]
        if spec.mode == "stream":
            return method.count(OK if isinstance(outcome, bytes) else code_of(outcome))
        recorded = method.durations.recorded
        recorded.append(monotonic() - request.since)
        if len(recorded) >= MAX_RECORDED:
            method.durations.settle()
        if not isinstance(outcome, bytes):
            method.failed += 1
            method.count(code_of(outcome))

    def refused(self, method: str | None, failure: Failure) -> None:
        """A call was not run. `method` is the name of a declared operation, else None."""
        self.methods[OTHER if method is None else method].count(code_of(failure))


OK: Final = "ok"
"""The code of a request that did not fail."""


def code_of(failure: Failure) -> str:
    """The failure's name in the table of errors, or that which its operation declares."""
    return row_of(failure).protocol_code
