"""Messages to a service manager: to which address, and whether there are pings."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from discreet.daemon.logs import log
from discreet.daemon.service_manager import LEAST_PING_SECONDS, ServiceManager, _ping_interval
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such sockets")

ADDRESSES: dict[str, Callable[[Path], str]] = {"path": lambda folder: str(folder / "notify")}
if sys.platform == "linux":
    ADDRESSES["abstract"] = lambda folder: f"@discreet-test-{os.getpid()}-{folder.name}"


@pytest.fixture(params=ADDRESSES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return ADDRESSES[request.param](tmp_path)


@pytest.fixture
def told(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiving:
        receiving.bind("\0" + address[1:] if address.startswith("@") else address)
        receiving.settimeout(DEADLINE_SECONDS)
        yield receiving


@pytest.fixture(autouse=True)
def empty_log() -> Iterator[None]:
    log.queue.clear()
    yield
    log.queue.clear()


def events() -> list[str]:
    return [event.name for event in iter(log.queue.get, None)]


async def entered() -> bool:
    return True


@pytest.mark.parametrize(
    ("watchdog", "warnings"),
    [
        ({}, []),
        ({"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}, []),
        ({"WATCHDOG_USEC": "0"}, ["manager.watchdog_unusable"]),
        ({"WATCHDOG_USEC": "soon"}, ["manager.watchdog_unusable"]),
        ({"WATCHDOG_USEC": "١٢"}, ["manager.watchdog_unusable"]),
    ],
)
def test_without_a_watchdog_of_its_own_there_are_no_pings_and_the_variables_are_gone(
    address: str, told: socket.socket, watchdog: dict[str, str], warnings: list[str]
) -> None:
    environ = {"NOTIFY_SOCKET": address, **watchdog, "OTHER": "stays"}
    with closing(ServiceManager(environ)) as manager:
        assert environ == {"OTHER": "stays"}
        anyio.run(manager.watch, entered)  # it would go on for ever
        manager.ready()
        manager.ending("draining", "signal")
    assert told.recv(100) == b"READY=1\nSTATUS=serving"
    assert told.recv(100) == b"STOPPING=1\nSTATUS=draining: signal"
    assert events() == warnings


async def failed() -> bool:
    return False


def test_a_daemon_whose_lifespan_failed_is_never_ready(address: str, told: socket.socket) -> None:
    with closing(ServiceManager({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1000"})) as manager:
        anyio.run(manager.watch, failed)
        manager.ending("stopped", "failed")
    assert told.recv(100) == b"STOPPING=1\nSTATUS=stopped: failed"


@pytest.mark.parametrize("wrong", ["/nowhere/notify", "vsock:2:1234", "@" + "x" * 200, "/" + "x" * 200, "relative", ""])
def test_an_address_where_nobody_listens_is_logged_once_and_raises_nothing(wrong: str) -> None:
    with closing(ServiceManager({"NOTIFY_SOCKET": wrong})) as manager:
        manager.ready()
        manager.ending("draining", "signal")
    assert events() == ["manager.unreachable"]


def test_a_manager_that_reads_nothing_delays_nobody(address: str, told: socket.socket) -> None:
    with closing(ServiceManager({"NOTIFY_SOCKET": address})) as manager:
        while not events():  # until its socket is full
            manager.ending("draining", "signal")
    assert told.recv(100)


def test_pings_leave_time_for_other_things_however_short_the_limit() -> None:
    assert _ping_interval("1", "") == LEAST_PING_SECONDS
    assert _ping_interval("2000000", "") == 1.0
