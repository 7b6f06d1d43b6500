"""Every async test runs on both event loops that anyio runs; and no test depends on how fast the machine is."""

import gc
import os
import shutil
import signal
import tempfile
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "any-machine",
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any-machine")

for _name in ("SIGINT", "SIGHUP"):  # nohup and background jobs ignore them, and whatever they start inherits that
    _number = getattr(signal, _name, None)
    if _number is not None and signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _name == "SIGINT" else signal.SIG_DFL)


# A child in another folder imports the same `discreet`, also where the path names it relative to this one.
if "PYTHONPATH" in os.environ:
    _path = os.environ["PYTHONPATH"].split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(entry) for entry in _path if entry)

# Tests write many small files, and make sure that they are stored. In memory that takes no time.
_MEMORY = "/dev/shm"
if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 2 << 30:
    tempfile.tempdir = os.environ["TMPDIR"] = _MEMORY


def pytest_xdist_auto_num_workers() -> int:
    """Two more than processors: now and then each waits for a process, or for the end of a time limit."""
    return (os.cpu_count() or 1) + 2


def pytest_collection() -> None:
    gc.disable()  # what is collected stays: to look for garbage in it takes a third of the time


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with those that wait for other programs for longest: at the end all would wait for them."""
    items.sort(key=lambda item: "interop" not in item.path.parts)


def pytest_collection_finish() -> None:
    """Leave thousands of tests out of every later search for garbage."""
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        if find_spec(mark.args[0]) is None:
            pytest.skip(f"{mark.args[0]} is not installed")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)
