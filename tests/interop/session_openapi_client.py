"""A client that openapi-python-client wrote, as the package `generated`, calls the notes: session_openapi_client.py URL"""

import sys

from generated import Client
from generated.api.notes import get_notes_read, get_notes_search, notes_add, notes_edit
from generated.models import EditConflictError, InvalidInputError, NoSuchNoteError, NotesAddBody, NotesEditBody

client = Client(base_url=sys.argv[1], raise_on_unexpected_status=True)

added = notes_add.sync(client=client, body=NotesAddBody(text="one"))
print(f"add={added.id} {added.text}")
print(f"read={get_notes_read.sync(client=client, id=added.id).version}")

edited = notes_edit.sync(client=client, body=NotesEditBody(id=added.id, text="two", version=1))
print(f"edit={edited.text} {edited.version}")
print("search=" + " ".join(note.text for note in get_notes_search.sync(client=client, text="tw")))

missing = get_notes_read.sync_detailed(client=client, id=99)
assert isinstance(missing.parsed, NoSuchNoteError), missing.parsed
print(f"missing={int(missing.status_code)} {missing.parsed.code} {missing.parsed.details.id}")

conflict = notes_edit.sync_detailed(client=client, body=NotesEditBody(id=added.id, text="three", version=1))
assert isinstance(conflict.parsed, EditConflictError), conflict.parsed
print(f"conflict={int(conflict.status_code)} {conflict.parsed.retryable} {conflict.parsed.details.version}")

wrong = notes_add.sync_detailed(client=client, body=NotesAddBody(text=""))
assert isinstance(wrong.parsed, InvalidInputError), wrong.parsed
print(f"wrong={int(wrong.status_code)} {wrong.parsed.details.param}")
