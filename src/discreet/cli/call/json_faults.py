"""Says where a text that a person has written is no JSON, and what was probably meant. Only words errors, decides nothing."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ...daemon.rpc.envelope import without_unpaired
from ...errors.printable import cut, printable
from ...errors.redaction import scrub

_MAX_SHOWN: Final = 80
"""Characters of the text that are repeated: enough to see what a shell has done to it."""

_MALFORMED: Final = re.compile(r"JSON is malformed: (.*) \(byte (\d+)\)")

_TYPOGRAPHIC: Final = "“”„«»"

QUOTING: Final = """; names and texts stand in double quotes, and all of it between single quotes: '{"name": 1}'"""


def describe_json_fault(text: str, exc: msgspec.DecodeError | RecursionError) -> str:
    """A phrase for a text that the decoder has refused with this error: what came, where it ends to be JSON, and a hint."""
    came = printable(cut(scrub(text), _MAX_SHOWN))
    if isinstance(exc, RecursionError):
        return f"nested too deeply: {came}"
    if without_unpaired(text.encode()) is not None:
        return f"no JSON: {came}: half of a surrogate pair (\\ud800 to \\udfff) is no text"
    hint = _hint(text)
    if (found := _MALFORMED.fullmatch(str(exc))) is None:
        return f"no JSON: {came}: it ends too early{hint}"
    what, byte = found.groups()
    return f"no JSON: {came}: {what} at {_place(text, int(byte))}{hint}"


def _place(text: str, byte: int) -> str:
    before = text.encode()[:byte].decode(errors="ignore")
    column = len(before) - (before.rfind("\n") + 1) + 1
    return f"line {before.count(chr(10)) + 1}, character {column}" if "\n" in text.strip() else f"character {column}"


def _hint(text: str) -> str:
    if text.startswith("@"):
        return f"; a file is read from stdin: --json - < {printable(cut(scrub(text[1:]), _MAX_SHOWN))}"
    if typographic := next((char for char in text if char in _TYPOGRAPHIC), ""):
        return f'; {typographic} is no quote of JSON, " is'
    return QUOTING if '"' not in text else ""
