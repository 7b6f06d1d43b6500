"""What A2A 1.0 demands of HTTP, section by section, and that each demand has a test whose name begins with its section."""

from __future__ import annotations

import pytest

from . import test_a2a_section_3, test_a2a_section_3_1, test_a2a_section_5, test_a2a_section_9, test_a2a_section_11

MUSTS = {
    "3.1.1": ["a message is answered by a task or a message", "an ended task takes no message"],
    "3.1.2": [
        "a stream with a message has nothing else",
        "a stream is the task and its updates until it ends",
        "progress is told while the agent works",
    ],
    "3.1.3": ["a task is as it was sent"],
    "3.1.4": [
        "only the callers own tasks are listed",
        "tasks come in pages the last changed first",
        "artifacts are listed only where they are asked for",
    ],
    "3.1.5": ["a task is canceled once"],
    "3.1.6": ["a subscription begins with the task and ends with it"],
    "3.1.7": ["to 3 1 10 push configs are made read listed and deleted"],
    "3.1.11": ["the extended card is for callers that are known"],
    "3.2.2": [
        "a send waits for the end with all that was made",
        "a send that returns immediately does not wait",
    ],
    "3.2.4": ["no more history comes than was asked for"],
    "3.2.6": ["names of service parameters have no case and values have"],
    "3.3.2": [
        "missing or wrong credentials are refused with a challenge",
        "a task of another caller is not there",
        "wrong params are named",
        "every error has a code a message and typed details",
    ],
    "3.3.4": [
        "without push notifications configs are refused",
        "without streaming streams are refused",
        "without an extended card asking for it is refused",
        "a required extension must be named",
    ],
    "3.4.1": ["a context that was made is in the answer and a given one is kept"],
    "3.4.2": ["each task has an id of its own and an unknown one is refused"],
    "3.4.3": ["the context follows from the task and another one is refused"],
    "3.5.2": ["all streams of a task get the same events and one that closes disturbs none"],
    "3.6": ["a patch version is not considered"],
    "3.6.1": ["the version may be a request parameter"],
    "3.6.2": ["a version that the method does not speak is refused", "no version means 0 3"],
    "5.1": ["a task of one binding is the same in the other"],
    "5.2": ["the card declares every binding and version that is served"],
    "5.3": ["every operation has its method and its path"],
    "5.4": [
        "each error of a2a has its code and its statuses",
        "the bindings answer with these codes and statuses",
    ],
    "5.5": ["members are in camel case and enumerations are names"],
    "5.6.1": ["times are in utc and such are read"],
    "5.7": ["a required field that is missing is named", "members that are not known are ignored"],
    "9.1": ["requests and responses are application json", "streams are event streams"],
    "9.2": ["service parameters come from headers and not from the body"],
    "9.3": ["an answer has the form of json rpc"],
    "9.4": ["every method of the specification is one"],
    "9.4.2": ["each event is a response to the request"],
    "9.5": ["the data of every error is a list of typed objects", "wrong params have a bad request"],
    "11.1": ["answers are a2a json to requests of either json"],
    "11.2": ["service parameters are headers of any case"],
    "11.3": ["every method has a path in its version", "a tenant stands before the path and is kept"],
    "11.3.2": ["a subscription is a get or a post"],
    "11.4": ["a body must be an object of json"],
    "11.5": ["every type of param has its form in a query", "names are in camel case and others are ignored"],
    "11.6": ["an error is a status with an error info"],
    "11.7": [
        "the events are the values themselves",
        "an error before the first event is a response",
        "a later error is the last event and its name tells it",
    ],
}
"""The sections with a MUST for servers over HTTP, and the tests that hold it. Section 8 (the card) has tests of its own."""

_MODULES = (
    test_a2a_section_3,
    test_a2a_section_3_1,
    test_a2a_section_5,
    test_a2a_section_9,
    test_a2a_section_11,
)
TESTS = {name for module in _MODULES for name in vars(module) if name.startswith("test_")}


@pytest.mark.parametrize("section", MUSTS)
def test_each_demand_of_a_section_has_its_test(section: str) -> None:
    prefix = f"test_{section.replace('.', '_')}_"
    assert [name for must in MUSTS[section] if (name := prefix + must.replace(" ", "_")) not in TESTS] == []


def test_each_test_names_a_section_that_is_listed() -> None:
    listed = tuple(f"test_{section.replace('.', '_')}_" for section in MUSTS)
    assert [name for name in TESTS if not name.startswith(listed)] == []
