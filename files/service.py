"""The built-in service `fs`: declares the file operations."""

from __future__ import annotations

from ..daemon.operations.service import Service
from .operations import FileSystem
from .root import Root
from .types import LIST_ERRORS, READ_ERRORS, SEARCH_ERRORS, STAT_ERRORS, WATCH_ERRORS, WRITE_ERRORS
from .watch import MAX_WATCHES, FileWatcher

MAX_SEARCHES = 2
"""Searches that run at the same time. They keep the CPU busy, and Python's lock lets only one thread compute at a time;
more of them would not be faster, but keep everything else waiting."""


MAX_LISTINGS = 2
"""Listings that run at the same time, for the same reason: in a large directory one takes as long as a search."""


def file_service(root: str, *, allow_write: bool) -> Service:
    """The files below `root`, read-only unless `allow_write`. Raises `OSError` for a root that can't be opened."""
    root_directory = Root(root)
    files = FileSystem(root_directory)
    service = Service("fs", description="The files below the root.")
    service.query(errors=READ_ERRORS)(files.read)
    service.query(errors=LIST_ERRORS, concurrency=MAX_LISTINGS)(files.list)
    service.query(errors=STAT_ERRORS)(files.stat)
    service.query(errors=SEARCH_ERRORS, concurrency=MAX_SEARCHES)(files.search)
    service.subscription(errors=WATCH_ERRORS, limit=MAX_WATCHES)(FileWatcher(root_directory).watch)
    if allow_write:
        service.mutation(errors=WRITE_ERRORS, keyed="path")(files.write)
    return service
