"""Notes in memory: queries, mutations, declared errors, one lane per note, and a subscription to all changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

import anyio
from anyio.lowlevel import checkpoint
from msgspec import Meta, Struct

from discreet import OperationError, Service

notes = Service("notes", description="Short texts, and what became of them.")

Text = Annotated[str, Meta(min_length=1, max_length=10_000)]


class Note(Struct, frozen=True):
    """A note. `version` counts its texts from 1."""

    id: int
    text: str
    version: int = 1


class NoSuchNote(OperationError, code="NO_SUCH_NOTE", http_status=404):
    """There is no note with this id."""

    id: int


class EditConflict(OperationError, code="EDIT_CONFLICT", http_status=409):
    """The note has been edited since it was read."""

    id: int
    version: int


class TaskIndex:
    """Every version of every note, in the order of the changes, and who waits for the next one."""

    def __init__(self) -> None:
        self.history: list[Note] = []
        self._waiting: list[anyio.Event] = []

    def all(self) -> dict[int, Note]:
        return {note.id: note for note in self.history}

    def find(self, id: int) -> Note:
        note = self.all().get(id)
        if note is None:
            raise NoSuchNote(id=id)
        return note

    def put(self, note: Note) -> Note:
        self.history.append(note)
        while self._waiting:
            self._waiting.pop().set()
        return note

    async def wait(self) -> None:
        changed = anyio.Event()
        self._waiting.append(changed)
        await changed.wait()


shelf = TaskIndex()


@notes.query(inline=True)
def search(text: str = "") -> list[Note]:
    """List the notes that hold a text, all of them without one."""
    return [note for note in shelf.all().values() if text in note.text]


@notes.query(inline=True, errors=[NoSuchNote])
def read(id: int) -> Note:
    """Read one note."""
    return shelf.find(id)


@notes.mutation(inline=True)
def add(text: Text) -> Note:
    """Add a note."""
    return shelf.put(Note(len(shelf.all()) + 1, text))


@notes.mutation(errors=[NoSuchNote, EditConflict], keyed="id")
async def edit(id: int, text: Text, version: int) -> Note:
    """Give a note another text; `version` is the one that the caller has read."""
    note = shelf.find(id)
    await checkpoint()  # where a store would be asked: edits of this note wait, those of others don't
    if note.version != version:
        raise EditConflict(id=id, version=note.version)
    return shelf.put(Note(id, text, version + 1))


@notes.subscription()
async def changes(since: int = 0) -> AsyncIterator[Note]:
    """Follow the changes, from the first one or from a later one on, for as long as the caller listens."""
    while True:
        while since < len(shelf.history):
            yield shelf.history[since]
            since += 1
        await shelf.wait()
