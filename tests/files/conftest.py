"""A file service over a temporary folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from discreet.files.root import Root
from discreet.files.service import FileSystem
from support.daemon_wire import logged as logged  # noqa: PLC0414 - a fixture
from support.daemon_wire import serving as serving  # noqa: PLC0414 - a fixture
from support.daemon_wire import wire_class as wire_class  # noqa: PLC0414 - a fixture


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The folder that is the root, empty; some modules lay out one of their own."""
    return tmp_path


@pytest.fixture
def root(place: Path) -> Iterator[Root]:
    with closing(Root(str(place))) as opened:
        yield opened


@pytest.fixture
def fs(root: Root) -> FileSystem:
    return FileSystem(root)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, FileSystem]]:
    """One folder for all examples of a property, and the service over it."""
    folder = tmp_path_factory.mktemp("scratch")
    with closing(Root(str(folder))) as root:
        yield folder, FileSystem(root)


@pytest.fixture
def fifo(place: Path) -> Path:
    path = place / "fifo"
    os.mkfifo(path)
    return path
