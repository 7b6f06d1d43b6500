"""Examples and scenarios: what they must state, and what is found where the service does something else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from discreet import OperationError, Service
from discreet.client import Peer
from discreet.testing import ContractBroken, Example, check_contract


class Burnt(OperationError, code="BURNT"):
    """It is burnt."""

    title: str


def violations(service: Service, **options: Any) -> list[tuple[str, str]]:
    with pytest.raises(ContractBroken) as broken:
        check_contract(service, **options)
    return [(found.where, found.what) for found in broken.value.report.violations]


def brewery() -> Service:
    """A service with one operation of each kind."""
    service = Service("brew")

    @service.mutation()
    async def make(n: int) -> int:
        """Brew."""
        return n

    @service.subscription(errors=[Burnt])
    async def drips(n: int) -> AsyncIterator[int]:
        """Drip."""
        for number in range(n):
            yield number
        if n > 2:
            raise Burnt(title="pot")

    return service


@pytest.mark.parametrize(
    "example",
    [
        Example("brew/drips", {"n": 2}, result=[0, 1]),
        Example("brew/make", {"n": 1}, events=[1]),
        Example("brew/drips", {"n": 3}, events=[0, 1], error="BURNT"),
        Example("brew/drips", {"n": 3}, events=[0, 1, 2], error="OTHER"),
    ],
)
def test_an_example_that_states_another_outcome_is_a_finding(example: Example) -> None:
    assert len(violations(brewery(), examples=[example], unprovoked=[Burnt])) == 1


def test_the_events_before_an_error_are_compared_too() -> None:
    check_contract(brewery(), examples=[Example("brew/drips", {"n": 3}, events=[0, 1, 2], error=Burnt)])


def test_a_scenario_that_fails_is_found_with_its_line() -> None:
    async def counting(peer: Peer) -> None:
        await peer.call("version")
        raise AssertionError

    line = counting.__code__.co_firstlineno + 2
    [(where, what)] = violations(brewery(), examples=[counting], unprovoked=[Burnt])
    assert (where, what) == ("counting", f"test_examples_of_contracts.py:{line}: AssertionError: raise AssertionError")


def test_pytest_is_not_shown_the_inside_of_the_check() -> None:
    with pytest.raises(ContractBroken) as broken:
        check_contract(brewery(), examples=[])
    assert broken.traceback[-1].ishidden(broken)


def test_an_example_has_one_outcome() -> None:
    with pytest.raises(ValueError, match="or"):
        Example("m", result=1, error="X")


@pytest.mark.parametrize(
    ("services", "options"),
    [
        (("./a.py:s",), {}),
        ((None,), {}),
        ((), {"examples": 5}),
        ((), {"examples": Example("m")}),
        ((), {"examples": [5]}),
        ((), {"examples": [lambda peer: None]}),
        ((), {"unprovoked": [ValueError]}),
        ((), {"unprovoked": Burnt}),
        ((), {"examples": [], "scope": "x"}),
    ],
)
def test_arguments_of_other_types_are_refused(services: Any, options: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        check_contract(*services, **options)
