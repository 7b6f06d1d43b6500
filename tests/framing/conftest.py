"""Drives a parser as a channel does: reads it dry after every step, and refuses bodies that are no JSON.

Steps are chunks of bytes and what else a driver may say; a "pause" is a short silence, and "silence" a long one. In the outline of events a frame is its body, a fault its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Literal, TypeAlias

import msgspec
import pytest

from discreet.errors.failures import ParseFailure
from discreet.framing.events import END_OF_INPUT, NEED_DATA, Event, Fault, Frame
from discreet.framing.parser import Parser
from support.frames import chunks

Step: TypeAlias = bytes | Literal["pause", "silence", "time-out", "end"]
Drive: TypeAlias = Callable[[Parser, Iterable[Step]], list[Event]]
EveryChunking: TypeAlias = Callable[[Callable[[], Parser], Iterable[Step]], list[Event]]
Outline: TypeAlias = Callable[[Iterable[Event]], list[bytes | str]]


def read_dry(parser: Parser) -> Iterator[Event]:
    while (event := parser.next_event()) is not NEED_DATA and event is not END_OF_INPUT:
        yield event
        if isinstance(event, Frame):
            try:
                msgspec.json.decode(event.body)
            except (msgspec.DecodeError, UnicodeDecodeError):
                parser.refuse_body(ParseFailure("invalid-json"))


def run(parser: Parser, steps: Iterable[Step]) -> list[Event]:
    events: list[Event] = []
    for step in steps:
        match step:
            case "pause" | "silence":
                events += fall_silent(parser, long=step == "silence")
            case "time-out":
                if parser.clock == "frame":
                    parser.clock_expired()
            case "end":
                parser.end_of_input()
            case data:
                parser.receive_data(data)
        events += read_dry(parser)
    return events


def fall_silent(parser: Parser, *, long: bool) -> list[Event]:
    """A short silence, and then a long one: what is told before `NEED_DATA` is read changes nothing."""
    events: list[Event] = []
    if parser.clock == "short":
        parser.clock_expired()
        events += read_dry(parser)
    if long and parser.clock != "frame":
        parser.clock_expired()
    return events


def cut(steps: Iterable[Step], split: int | Random) -> Iterator[Step]:
    """The same steps, with the bytes in chunks."""
    for step in steps:
        yield from [step] if isinstance(step, str) else chunks(step, split)


@pytest.fixture(scope="session")
def drive() -> Drive:
    """Takes a parser and steps; returns the frames and faults in their order."""
    return run


@pytest.fixture(scope="session")
def every_chunking() -> EveryChunking:
    """Drives new parsers over the steps as they are, byte by byte and in other chunks; the events must be the same."""

    def check(make: Callable[[], Parser], steps: Iterable[Step]) -> list[Event]:
        steps = list(steps)
        whole = run(make(), steps)
        for size in (1, 2, 3, 7):
            assert run(make(), cut(steps, size)) == whole, f"in chunks of {size}"
        for seed in range(8):
            assert run(make(), cut(steps, Random(seed))) == whole, f"with seed {seed}"
        return whole

    return check


@pytest.fixture(scope="session")
def outline() -> Outline:
    def shorten(event: Event) -> bytes | str:
        if isinstance(event, Frame):
            return event.body
        assert isinstance(event, Fault)
        return event.failure.reason

    return lambda events: [shorten(event) for event in events]
