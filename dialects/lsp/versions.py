"""Keeps what functions make of a document, for as long as this version of the document is there."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar, final

from ...daemon.documents import TextDocument
from ...lazy import anyio

Function = TypeVar("Function", bound=Callable[[TextDocument], Any])

_MISSING: Final = object()
_ENTRIES: Final = threading.Lock()
"""Held while an entry is made, which takes no time."""


@final
class _Entry:
    """The value of one function for one version. Its lock is held while the value is computed."""

    __slots__ = ("lock", "value")

    def __init__(self, lock: Any) -> None:  # Any: of a thread or of an event loop
        self.lock: Final = lock
        self.value: Any = _MISSING


def cached_per_version(function: Function) -> Function:
    """Cache what a function makes of a document, for each version of the document: `def tree(document: lsp.TextDocument)`.

    The value belongs to the version: it is freed with the last reference to that version, which the client's next edit
    replaces. So at most one value per function and open document is kept, and those of versions that handlers still read.

    The function runs once at a time for a version; other callers wait for it. A `def` may be called from any thread, and
    blocks. An `async def` is awaited; a caller that is cancelled leaves the computation to the next one. An exception is raised
    in the caller that computes, and not kept.
    """
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def of_loop(document: TextDocument) -> Any:
            entry = _entry(document, of_loop, anyio.Lock)
            if entry.value is _MISSING:
                async with entry.lock:
                    if entry.value is _MISSING:
                        entry.value = await function(document)
            return entry.value

        return of_loop  # type: ignore[return-value] # it has the function's own signature

    @functools.wraps(function)
    def of_threads(document: TextDocument) -> Any:
        entry = _entry(document, of_threads, threading.Lock)
        if entry.value is _MISSING:
            with entry.lock:
                if entry.value is _MISSING:
                    entry.value = function(document)
        return entry.value

    return of_threads  # type: ignore[return-value] # as above


def _entry(document: TextDocument, key: object, make_lock: Callable[[], Any]) -> _Entry:
    with _ENTRIES:
        if document.derived is None:
            document.derived = {}
        entry: _Entry | None = document.derived.get(key)
        if entry is None:
            entry = document.derived[key] = _Entry(make_lock())
    return entry
