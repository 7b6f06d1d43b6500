"""A daemon in memory and the other end of its wire, an operation that waits at a gate, and a service of subscriptions."""

import pytest

from support.daemon_wire import logged as logged  # noqa: PLC0414 - fixtures
from support.daemon_wire import serving as serving  # noqa: PLC0414
from support.daemon_wire import wire_class as wire_class  # noqa: PLC0414
from support.gates import Gate
from support.ticks import Ticks


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()
