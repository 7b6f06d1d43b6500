"""Notes in memory: queries, mutations, declared errors, edits one at a time per note, a subscription, and a lifespan."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import anyio
from anyio.lowlevel import checkpoint
from msgspec import Meta, Struct

from discreet import Context, OperationError, Service

Text = Annotated[str, Meta(min_length=1, max_length=10_000)]


class Note(Struct, frozen=True):
    """A note. `version` counts its edits from 1."""

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


class NoteStore:
    """Every version of every note, in the order of the changes."""

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


@asynccontextmanager
async def opened() -> AsyncIterator[NoteStore]:
    """A new store for each daemon, which handlers find in `ctx.state`. A database would be opened here, and closed behind."""
    yield NoteStore()


notes = Service("notes", description="Short texts and their versions.", lifespan=opened)


def store_of(ctx: Context) -> NoteStore:
    store: NoteStore = ctx.state
    return store


@notes.query(inline=True)
def search(ctx: Context, text: str = "") -> list[Note]:
    """List the notes that contain a text; all notes by default."""
    return [note for note in store_of(ctx).all().values() if text in note.text]


@notes.query(inline=True, errors=[NoSuchNote])
def read(ctx: Context, id: int) -> Note:
    """Read one note."""
    return store_of(ctx).find(id)


@notes.mutation(inline=True)
def add(ctx: Context, text: Text) -> Note:
    """Add a note."""
    store = store_of(ctx)
    return store.put(Note(len(store.all()) + 1, text))


@notes.mutation(errors=[NoSuchNote, EditConflict], keyed="id")
async def edit(ctx: Context, id: int, text: Text, version: int) -> Note:
    """Replace the text of a note. `version` is the one that the caller has read."""
    store = store_of(ctx)
    note = store.find(id)
    await checkpoint()  # as a database would: meanwhile other edits of this note wait, and those of other notes run
    if note.version != version:
        raise EditConflict(id=id, version=note.version)
    return store.put(Note(id, text, version + 1))


@notes.subscription()
async def changes(ctx: Context, since: Annotated[int, Meta(ge=0)] = 0) -> AsyncIterator[Note]:
    """Follow the changes from number `since` on, for as long as the caller listens."""
    store = store_of(ctx)
    while True:
        while since < len(store.history):
            yield store.history[since]
            since += 1
        await store.wait()
