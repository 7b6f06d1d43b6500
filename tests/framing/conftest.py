"""Drives a parser as a channel does: reads it dry after every step, and refuses bodies that are no JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeAlias

import msgspec
import pytest

from discreet.errors.failures import ParseFailure
from discreet.framing.parser import END_OF_INPUT, NEED_DATA, Event, Frame, Parser

Step: TypeAlias = bytes | Literal["rest", "time-out", "end"]
Drive: TypeAlias = Callable[[Parser, Iterable[Step]], list[Event]]
Outline: TypeAlias = Callable[[Iterable[Event]], list[bytes | str]]


def read_dry(parser: Parser) -> Iterator[Event]:
    while (event := parser.next_event()) is not NEED_DATA and event is not END_OF_INPUT:
        yield event
        if isinstance(event, Frame):
            try:
                msgspec.json.decode(event.body)
            except (msgspec.DecodeError, UnicodeDecodeError):
                parser.refuse_body(ParseFailure("invalid-json"))


@pytest.fixture(scope="session")
def drive() -> Drive:
    """Takes a parser and steps; returns the frames and faults in their order."""

    def run(parser: Parser, steps: Iterable[Step]) -> list[Event]:
        events: list[Event] = []
        for step in steps:
            match step:
                case "rest":
                    parser.input_rested()
                case "time-out":
                    parser.frame_timed_out()
                case "end":
                    parser.end_of_input()
                case data:
                    parser.receive_data(data)
            events += read_dry(parser)
        return events

    return run


@pytest.fixture(scope="session")
def outline() -> Outline:
    """Events in short: a frame is its body, a fault is its reason."""

    def shorten(event: Event) -> bytes | str:
        if isinstance(event, Frame):
            return event.body
        failure = getattr(event, "failure")
        return str(failure.reason)

    return lambda events: [shorten(event) for event in events]
