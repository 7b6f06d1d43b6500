"""`log`, the object that the daemon logs through. Compares levels and queues events; never renders, never waits.

Any thread and any signal handler may call it: before `start_logging` events are kept, up to a bound, and after
`LogWriter.close` they are dropped. It never raises.
"""

from __future__ import annotations

from _thread import get_ident
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import takewhile
from time import monotonic, time
from typing import Any, Final, Literal, Protocol, TypeAlias, final

import msgspec

# Copies the fields of an event for the queue, and estimates their size. Containers are copied, because the caller may change
# them before the writer thread renders them; everything else is kept by reference. No code of the values is called, so
# nothing here can raise or wait.


FLAT_BYTES: Final = 32
"""The assumed size of a number, a flag or an object of another type."""

EXCEPTION_BYTES: Final = 4096
"""The assumed size of an exception: its traceback keeps frames alive."""

CONTAINER_BYTES: Final = 64 * 1024
"""How much of one container is copied: eight times as much as a line shows of a field."""

MAX_DEPTH: Final = 12
"""Levels of nesting."""

CUT: Final = "<cut>"
"""The scrubber's mark (`errors.redaction.limits.CUT`, which is expensive to import). It replaces a whole value that is too
deep or too large: half a secret would not be recognised as one."""


def copy_fields(fields: dict[str, object]) -> int:
    """Replace the containers in `fields` by copies. Returns the approximate size of all fields in bytes."""
    size = 0
    for key, value in fields.items():
        kind = type(value)
        if kind is str:
            size += len(value)  # type: ignore[arg-type]  # mypy doesn't narrow by `type(...) is`
        elif kind in _CONTAINERS:
            budget = [CONTAINER_BYTES]
            fields[key] = _copy(value, budget, MAX_DEPTH)
            size += CONTAINER_BYTES - budget[0]
        else:
            size += EXCEPTION_BYTES if issubclass(kind, BaseException) else FLAT_BYTES
    return size


_CONTAINERS: Final = frozenset({dict, list, tuple, set, frozenset})
"""Exactly these types: a subclass may run code of its own, so only the writer thread looks into it."""

_KEYS: Final = frozenset({str, int, float, bool, type(None)})
"""Keys of other types may run code of their own when they are hashed; their type names replace them."""


def _copy(value: Any, budget: list[int], depth: int) -> object:  # Any: the kind of a container is its type
    kind = type(value)
    budget[0] -= len(value) if kind is str else FLAT_BYTES
    if budget[0] < 0 or depth == 0:
        return CUT
    if kind is dict:
        items = takewhile(lambda _: budget[0] >= 0, value.copy().items())
        return {_copy_key(key, budget): _copy(item, budget, depth - 1) for key, item in items}
    if kind in _CONTAINERS:
        return [_copy(item, budget, depth - 1) for item in takewhile(lambda _: budget[0] >= 0, list(value))]
    return value


def _copy_key(key: object, budget: list[int]) -> object:
    if type(key) is str:
        budget[0] -= len(key)
    return key if type(key) in _KEYS else f"<{type(key).__name__}>"


MAX_EVENTS: Final = 4096
"""About a second of a busy debug log, and little memory."""

MAX_BYTES: Final = 2 * 1024 * 1024
"""Approximate size of all queued events. The last one accepted may exceed it."""

EVENT_BYTES: Final = 128
"""The size of an event without its fields."""


class LogEvent(msgspec.Struct, frozen=True):
    """One event. `when` is its time in seconds since the epoch, `refused` counts the events refused before it."""

    when: float
    rank: int
    name: str
    fields: dict[str, object]
    refused: int
    size: int


def _no_writer() -> None:
    """The wake-up call while no writer is attached."""


@final
class LogQueue:
    """Events in the order of their `put`. A full queue refuses the newest event and counts it in `refused`.

    There is no lock, so that nothing can wait here: a signal handler, a destructor or a thread that was stopped half-way
    could otherwise block all others. `append` and `popleft` of a deque are atomic. On a build without the global lock a counter
    may lose an update: sizes are approximate anyway, and are corrected whenever the queue runs empty.
    """

    __slots__ = ("_bytes", "_events", "_wake", "annotate", "lost", "open", "refused", "writer", "writer_idle")

    def __init__(self) -> None:
        self._events: deque[LogEvent] = deque()
        self._bytes = 0
        self._wake: Callable[[], None] = _no_writer
        self.annotate: Callable[[dict[str, object]], None] | None = None
        """Adds to the fields of an event what the thread that logs it stands in. It must not raise."""
        self.writer_idle = False
        """The writer waits: `put` must wake it."""
        self.open = True
        """Otherwise every event is refused. Queued events can still be read."""
        self.refused = 0
        """How many events were refused since the writer was attached."""
        self.lost = 0
        """How many events the writer has taken and could not write."""
        self.writer = 0
        """The writer's thread. Events that it causes itself, such as warnings while it renders, are ignored: they would
        never end."""

    def __len__(self) -> int:
        return len(self._events)

    def put(self, rank: int, name: str, fields: dict[str, object], when: float | None = None) -> None:
        """Queue one event, or count it as refused. The queue owns `fields` from now on."""
        if get_ident() == self.writer:
            return
        if not self.open or len(self._events) >= MAX_EVENTS or self._bytes >= MAX_BYTES:
            self.refused += 1
            return
        add_bound(fields)
        if self.annotate is not None:
            self.annotate(fields)
        size = copy_fields(fields) + EVENT_BYTES
        self._bytes += size
        self._events.append(LogEvent(time() if when is None else when, rank, name, fields, self.refused, size))
        if self.writer_idle:
            self._wake()

    def get(self) -> LogEvent | None:
        """The oldest event, or None. For the writer alone."""
        try:
            event = self._events.popleft()
        except IndexError:
            self._bytes = 0
            return None
        self._bytes -= event.size
        return event

    @property
    def attached(self) -> bool:
        """Whether there is a writer."""
        return self._wake is not _no_writer

    def attach(self, wake: Callable[[], None], *, rank: int) -> None:
        """Attach the writer: from now on `wake` is called when it is idle. Queued events below `rank` are discarded."""
        for _ in range(len(self._events)):
            event = self._events.popleft()
            if event.rank >= rank:
                self._events.append(event)
        self._wake, self.open, self.writer_idle = wake, True, True
        if self._events:
            wake()

    @property
    def dropped(self) -> int:
        """How many events no line was written for."""
        return self.refused + self.lost

    def detach(self) -> int:
        """Detach the writer and clear the queue. Returns how many events were dropped or cleared since `attach`."""
        self._wake, self.writer_idle = _no_writer, False
        lost = self.dropped + len(self._events)
        self.clear()
        return lost

    def clear(self) -> None:
        """Empty the queue without counting: a forked child has copies of events that its parent writes."""
        self._events.clear()
        self._bytes = self.refused = self.lost = 0


Level: TypeAlias = Literal["debug", "info", "warn", "error"]

AnyLevel: TypeAlias = Level | Literal["warning"]
"""A level as code may name it: `warning` means `warn`."""

RANK: Final[dict[str, int]] = {"debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40}
"""The same numbers as in the standard library's `logging`, so that one threshold serves both."""

LEVELS: Final[dict[int, Level]] = {10: "debug", 20: "info", 30: "warn", 40: "error"}


def parse_level(text: str) -> Level | None:
    """The level that a user names, in any case; None for an unknown name."""
    return LEVELS.get(RANK.get(text.lower(), 0))


def level_of_number(number: int) -> Level:
    """The level of a number as `logging` counts: the nearest one at or below the number."""
    return LEVELS[min(max(number // 10 * 10, 10), 40)]


class LoggedCall(Protocol):
    """A call of an operation. `id` is a JSON text, None for a notification and for a call that the app has made for `origin`.
    `task` is the agent's task that it names."""

    @property
    def method(self) -> str: ...
    @property
    def id(self) -> bytes | None: ...
    @property
    def task(self) -> str | None: ...
    @property
    def origin(self) -> LoggedCall | LoggedTask | None: ...


class LoggedTask(msgspec.Struct, frozen=True):
    """An agent's task, and the call that has asked for its execution; None where another daemon has."""

    task: str
    origin: LoggedCall | None = None


Bound: TypeAlias = LoggedCall | LoggedTask

BOUND: Final[ContextVar[Bound | None]] = ContextVar("discreet_bound", default=None)
"""The request or task that the running code works for. Tasks, threads and calls that a handler begins have it too. Inline
handlers begin nothing and must cost nothing: for them it stands in `INLINE`."""


@final
class Inline:
    """The call that runs on the thread of the loop without a task, or whose params are decoded there. Set by what runs it.
    `printed` says that a line was begun for such a call, in context variables that may be those of others."""

    __slots__ = ("call", "printed", "thread")

    def __init__(self) -> None:
        self.call: LoggedCall | None = None
        self.printed = False
        self.thread = 0


INLINE: Final = Inline()


def bound() -> Bound | None:
    """Return the request or task that the running code works for; None for code of the daemon."""
    found = BOUND.get()
    if INLINE.call is not None and INLINE.thread == get_ident():
        return INLINE.call
    return found


@contextmanager
def bind(found: Bound | None) -> Iterator[None]:
    """Have the log name this for a block."""
    token = BOUND.set(found)
    try:
        yield
    finally:
        BOUND.reset(token)


def add_bound(fields: dict[str, object]) -> None:
    """Name what the running code works for, as far as `fields` don't."""
    found = bound()
    if found is not None:
        add_names(fields, found)


def add_names(fields: dict[str, object], found: Bound | None) -> None:
    """Name this, and those for whom it works, as far as `fields` don't. An event about another method names no call."""
    given = fields.get("method")
    is_about_it = given is None
    while found is not None:
        if found.task is not None:
            fields.setdefault("task", found.task)
        if not isinstance(found, LoggedTask):
            is_about_it = is_about_it or given == found.method
            if is_about_it:
                fields.setdefault("method", found.method)
                if found.id is not None and found.id != b"null":
                    fields.setdefault("id", found.id)
        found = found.origin


_DEBUG, _INFO, _WARN, _ERROR = LEVELS


@final
class ConfiguredPath(str):
    """A path that the operator has chosen, and looks for in the log. As a field it keeps its directories, of which other paths
    are scrubbed; secrets in it are scrubbed nevertheless."""

    __slots__ = ()


@final
class Logger:
    """Events with fields. A field `exc` that holds an exception is rendered as its traceback, scrubbed.

    Another thread renders the fields later: pass plain values. Containers are copied; other objects must not change.
    """

    __slots__ = ("_level_listeners", "_threshold", "level", "queue")

    def __init__(self) -> None:
        self.queue = LogQueue()
        self.level: Level = "info"
        """The current level. Until `start_logging` sets it, events from info on are kept."""
        self._threshold = _INFO
        self._level_listeners: list[Callable[[int], None]] = []

    def debug(self, event: str, /, **fields: object) -> None:
        if self._threshold <= _DEBUG:
            self.queue.put(_DEBUG, event, fields)

    def info(self, event: str, /, **fields: object) -> None:
        if self._threshold <= _INFO:
            self.queue.put(_INFO, event, fields)

    def warning(self, event: str, /, **fields: object) -> None:
        if self._threshold <= _WARN:
            self.queue.put(_WARN, event, fields)

    def error(self, event: str, /, **fields: object) -> None:
        if self._threshold <= _ERROR:
            self.queue.put(_ERROR, event, fields)

    def always(self, event: str, /, **fields: object) -> None:
        """Log an event of the level info, whatever the level is: what an operator has asked for."""
        self.queue.put(_INFO, event, fields)

    def record(self, level: AnyLevel, event: str, fields: dict[str, object], *, when: float | None = None) -> None:
        """Log an event whose level is data. The log owns `fields` from now on; `when` is the event's epoch time."""
        rank = RANK[level]
        if self._threshold <= rank:
            self.queue.put(rank, event, fields, when)

    def is_enabled_for(self, level: AnyLevel) -> bool:
        """Whether events of this level are logged. Ask before collecting fields that are expensive."""
        return self._threshold <= RANK[level]

    def set_level(self, name: str) -> Level:
        """Change the level at once, for every thread. Accepts any case and `warning`; returns the level's own name.

        Raises `ValueError` for any other name and then changes nothing.
        """
        level = parse_level(name)
        if level is None:
            raise ValueError("the level must be one of debug, info, warn, error")
        self.level, self._threshold = level, RANK[level]
        for listener in self._level_listeners:
            listener(self._threshold)
        return level

    def on_level(self, listener: Callable[[int], None]) -> Callable[[], None]:
        """Call `listener` with the level's number, now and after every change. The result removes the listener."""
        self._level_listeners.append(listener)
        listener(self._threshold)
        return lambda: self._level_listeners.remove(listener)


log: Final = Logger()


# Warnings that callers can cause as often as they like: logged now and then, with how often they were not.


INTERVAL_SECONDS: Final = 60.0
"""How often one of them is logged at most."""


@final
class RepeatedWarning:
    """One kind of event. The first is logged, and the first after each interval; `unlogged` says how many came between."""

    def __init__(self, event: str, *, level: AnyLevel = "warn", clock: Callable[[], float] = monotonic) -> None:
        self._event = event
        self._level: AnyLevel = level
        self._clock = clock
        self._silent_until = float("-inf")
        self._unlogged = 0

    def __call__(self, **fields: object) -> None:
        now = self._clock()
        if now < self._silent_until:
            self._unlogged += 1
            return
        self._silent_until = now + INTERVAL_SECONDS
        if self._unlogged:
            fields["unlogged"], self._unlogged = self._unlogged, 0
        log.record(self._level, self._event, fields)
