"""Rows of the store's tables and their checksums, which tell what was changed in the file by anything else. Runs no SQL."""

from __future__ import annotations

from typing import Final
from zlib import crc32

import msgspec

from ..failures import DamagedRecordError


class TaskRow(msgspec.Struct, array_like=True):
    """A row of `tasks`, in the order of its columns."""

    key: int
    id: str
    scope: str
    context_id: str
    state: int
    status_timestamp: str
    sequence: int
    generation: int
    snapshot_generation: int
    owner: str | None
    ended_ms: int | None
    checksum: int = 0

    def values(self) -> tuple[object, ...]:
        """The columns, with the checksum of the others."""
        *values, _ = msgspec.structs.astuple(self)
        return (*values, row_checksum(b"", *values))

    @property
    def is_intact(self) -> bool:
        return bool(self.values()[-1] == self.checksum)

    def verify(self) -> None:
        """Raises `DamagedRecordError`."""
        *values, checksum = msgspec.structs.astuple(self)
        verify("the row", self.id, checksum, b"", *values)


COLUMNS: Final = ", ".join(TaskRow.__struct_fields__)
COLUMN_COUNT: Final = len(TaskRow.__struct_fields__)


def row_checksum(body: bytes, *values: object) -> int:
    """CRC-32 of a row's body and of its other columns: strings, integers and None."""
    return crc32(body, crc32(repr(values).encode()))


def verify(what: str, task_id: str, checksum: object, body: bytes, *values: object) -> None:
    """Raises `DamagedRecordError` if that is not the row's checksum."""
    if not isinstance(body, bytes) or checksum != row_checksum(body, *values):
        raise DamagedRecordError(what, task_id)
