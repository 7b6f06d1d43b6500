"""The figures of a daemon at one moment, as `services/metrics` answers with them. Holds data and reads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from ..memory import Kind

Transport: TypeAlias = Literal["stdio", "http"]

EXPONENTS: Final = range(-13, 6)

BOUNDS: Final = tuple(2.0**exponent for exponent in EXPONENTS)
"""The upper bounds of the buckets of all histograms, in seconds: powers of two, from 0.12 ms to 32 s."""


class Histogram(msgspec.Struct, frozen=True):
    """How long things took. `buckets` counts those that took at most the bound of the same place in `BOUNDS`; `seconds` is
    their sum."""

    count: int
    seconds: float
    buckets: Sequence[int]


class RequestCount(msgspec.Struct, frozen=True):
    """How many requests had one outcome: `code` is `ok`, or the protocol code of the error."""

    transport: Transport
    method: str
    code: str
    count: int


class RequestDurations(msgspec.Struct, frozen=True):
    """How long the requests for one method took."""

    transport: Transport
    method: str
    durations: Histogram


class BacklogFigures(msgspec.Struct, frozen=True):
    """The requests that wait to be started, and their size."""

    requests: int
    bytes: int


class MemoryFigures(msgspec.Struct, frozen=True):
    """Bytes that are held for clients, by kind, and how many may be."""

    limit: int
    used: Mapping[Kind, int]


class StoreFigures(msgspec.Struct, frozen=True, rename="camel"):
    """How long the commits of the task store took, and how many of them failed."""

    commits: Histogram
    failed_commits: int


class LoopFigures(msgspec.Struct, frozen=True, rename="camel"):
    """`delay_seconds` is how long the event loop took for one turn just now. `blocked` is how many times a step of an app has
    kept it for longer than the setting `blocked-after`."""

    delay_seconds: float
    blocked: int


class Figures(msgspec.Struct, frozen=True, rename="camel"):
    """Counters are of the time since the start; all others of now. `tasks` are those of the store, by state;
    `queued_tasks` of them wait until a daemon has room for them."""

    version: str
    uptime_seconds: float
    requests: Sequence[RequestCount]
    bounds: Sequence[float]
    durations: Sequence[RequestDurations]
    in_flight: int
    backlog: BacklogFigures
    streams: int
    busy_threads: int
    tasks: Mapping[str, int]
    queued_tasks: int | None
    memory: MemoryFigures
    store: StoreFigures
    loop: LoopFigures
    refused_credentials: Mapping[str, int]
    redactions: int
    dropped_log_lines: int
