"""Values that functions make of a document, kept for each version."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import anyio
import pytest

from discreet import lsp
from discreet.daemon.documents import Documents
from support.backends import both_loops
from support.waits import DEADLINE_SECONDS


class Tree:
    def __init__(self, document: lsp.TextDocument) -> None:
        self.document = document  # as parsers do: the value leads back to the document


def test_a_version_is_computed_once_and_the_next_one_anew() -> None:
    computed: list[int] = []

    @lsp.cached_per_version
    def tree(document: lsp.TextDocument) -> Tree:
        computed.append(document.version)
        return Tree(document)

    documents = Documents()
    documents.open("a", "text", 1, "one")
    first = tree(documents["a"])
    assert tree(documents["a"]) is first
    documents.keep(documents["a"].changed(2, [(None, "two")]))
    assert tree(documents["a"]) is not first
    assert computed == [1, 2]


def test_the_value_is_freed_with_its_version() -> None:
    @lsp.cached_per_version
    def tree(document: lsp.TextDocument) -> Tree:
        return Tree(document)

    documents = Documents()
    documents.open("a", "text", 1, "one")
    found = weakref.ref(tree(documents["a"]))
    gc.collect()
    assert found() is not None
    documents.close("a")
    gc.collect()
    assert found() is None


def test_threads_wait_for_the_one_that_computes() -> None:
    begun, go, computed = threading.Event(), threading.Event(), list[int]()

    @lsp.cached_per_version
    def tree(document: lsp.TextDocument) -> Tree:
        computed.append(document.version)
        begun.set()
        assert go.wait(DEADLINE_SECONDS)
        return Tree(document)

    documents, found = Documents(), list[Any]()
    documents.open("a", "text", 1, "one")
    threads = [threading.Thread(target=lambda: found.append(tree(documents["a"]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert begun.wait(DEADLINE_SECONDS)
    documents.open("b", "text", 9, "other")
    go.set()
    assert tree(documents["b"]).document.version == 9
    for thread in threads:
        thread.join(DEADLINE_SECONDS)
    assert (len(found), len(set(found)), computed.count(1)) == (4, 1, 1)


def test_an_exception_is_not_kept() -> None:
    calls: list[int] = []

    @lsp.cached_per_version
    def tree(document: lsp.TextDocument) -> int:
        calls.append(1)
        if len(calls) == 1:
            raise ZeroDivisionError
        return 7

    document = Documents().of_text("a")
    with pytest.raises(ZeroDivisionError):
        tree(document)
    assert (tree(document), tree(document), len(calls)) == (7, 7, 2)


@both_loops
@pytest.mark.anyio
async def test_a_coroutine_that_is_cancelled_leaves_the_computation_to_the_next_one() -> None:
    begun, calls = anyio.Event(), list[int]()

    @lsp.cached_per_version
    async def tree(document: lsp.TextDocument) -> int:
        calls.append(1)
        if len(calls) == 1:
            begun.set()
            await anyio.sleep_forever()
        return len(calls)

    document, found = Documents().of_text("a"), list[int]()

    async def wait() -> None:
        found.append(await tree(document))

    async with anyio.create_task_group() as others, anyio.create_task_group() as first:
        first.start_soon(wait)
        await begun.wait()
        others.start_soon(wait)
        others.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        first.cancel_scope.cancel()
    assert (found, len(calls)) == ([2, 2], 2)
