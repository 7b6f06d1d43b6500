"""Every async test runs on both event loops that anyio runs; and no test depends on how fast the machine is."""

import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")

for _name in ("SIGINT", "SIGHUP"):  # nohup and background jobs ignore them, and whatever they start inherits that
    _number = getattr(signal, _name, None)
    if _number is not None and signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _name == "SIGINT" else signal.SIG_DFL)


def pytest_xdist_auto_num_workers() -> int:
    """One more than processors: now and then each waits for a process, or for the end of a time limit."""
    return (os.cpu_count() or 1) + 1


def pytest_collection() -> None:
    gc.disable()  # what is collected stays: to look for garbage in it takes a third of the time


def pytest_collection_finish() -> None:
    """Leave thousands of tests out of every later search for garbage."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)
