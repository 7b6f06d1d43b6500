"""The same tests on a daemon in memory and on a real process; and the contract."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from notes import EditConflict, NoSuchNote, Note, notes

from discreet.client import Peer
from discreet.testing import Example, check_contract, in_memory, spawned

HERE = Path(__file__).parent
Serving = Callable[[], AbstractAsyncContextManager[Peer]]


@pytest.fixture(params=["in memory", "spawned"])
def serving(request: pytest.FixtureRequest) -> Serving:
    return (
        (lambda: in_memory(notes)) if request.param == "in memory" else (lambda: spawned("./notes.py:notes", cwd=HERE))
    )


@pytest.mark.anyio
async def test_an_edit_of_what_was_read_before_another_edit_is_refused(serving: Serving) -> None:
    async with serving() as peer:
        note = await peer.call("notes/add", {"text": "Milk"}, type=Note)
        await peer.call("notes/edit", {"id": note.id, "text": "Bread", "version": 1})
        with pytest.raises(EditConflict) as failed:
            await peer.call("notes/edit", {"id": note.id, "text": "Eggs", "version": 1}, errors=[EditConflict])
        assert failed.value.version == 2


@pytest.mark.anyio
async def test_who_follows_the_changes_misses_none(serving: Serving) -> None:
    async with serving() as peer:
        await peer.call("notes/add", {"text": "Milk"})
        async with peer.subscribe("notes/changes", type=Note) as changes:
            assert await anext(changes) == Note(1, "Milk")
            await peer.call("notes/add", {"text": "Bread"})
            assert await anext(changes) == Note(2, "Bread")


def test_the_contract_holds() -> None:
    report = check_contract(
        notes,
        examples=[
            Example("notes/add", {"text": "Milk"}, result=Note(1, "Milk")),
            Example("notes/add", {"text": ""}, error="INVALID_INPUT"),
            Example("notes/search", {"text": "ilk"}, result=[Note(1, "Milk")]),
            Example("notes/read", {"id": 1}, result=Note(1, "Milk")),
            Example("notes/read", {"id": 9}, error=NoSuchNote),
            Example("notes/edit", {"id": 1, "text": "Oat milk", "version": 1}, result=Note(1, "Oat milk", 2)),
            Example("notes/edit", {"id": 1, "text": "Soy milk", "version": 1}, error=EditConflict),
            Example("notes/edit", {"id": 9, "text": "?", "version": 1}, error=NoSuchNote),
            Example("notes/changes", {"since": 1}, events=[Note(1, "Oat milk", 2)]),
        ],
        snapshot=HERE / "notes.schema.json",
    )
    assert report.unexercised == ()
    assert report.additions == ()
