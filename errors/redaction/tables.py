"""Redacts values whose name stands somewhere above: in the head of a table, before a list, among the columns of an INSERT.

Tables are Markdown, boxes of a database client, CSV, and columns parted by tabs or spaces. Never redacts a head, and only
what looks random or like a password: the cell of a table may be anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .limits import WorkBudget, nothing_to_redact
from .names import is_passphrase
from .secret_values import is_placeholder, is_secret
from .sensitivity import SENSITIVE_STEMS, Sensitivity, name_sensitivity

_MAX_CELLS = 64
_NAME = re.compile(r"[A-Za-z_][\w .-]{0,40}")
_RULER = re.compile(r"[\s|+=:│┼├┤─━┌┐└┘┬┴-]*")
# A line that may be the head of a table or the name above a list: words and delimiters only.
_CANDIDATE = re.compile(r"(?m)^[ \t|│\"'`-]*+[A-Za-z_][\w .,;|│\t\"'`-]*+(?:[:=][ \t]*+\[?[ \t]*+)?\r?\n")
_STEM = re.compile("|".join(map(re.escape, SENSITIVE_STEMS)))
_BARS = re.compile(r"[|│]")
_GAPS = re.compile(r"\t| {2,}")
_MIXED = (re.compile(r"[A-Za-z]"), re.compile(r"[0-9]"), re.compile(r"[!#$%&*@^~+=()]"))
_MIN_MIXED = 8  # characters
_QUOTES = "\"'` "
_OPENS_LIST = re.compile(r"([ \t]*+)(?:- )?[\"']?([A-Za-z_][\w.-]{0,63}+)[\"']?[ \t]*+[:=][ \t]*+(\[?)[ \t]*+\r?")
_ITEM = re.compile(r"([ \t]*+)(-[ \t]++)?([\"']?)([^\r\n]*?)\3[ \t]*,?[ \t\r]*")
_ENTRY = re.compile(r"[\"']?([\w.-]{1,64})[\"']?[ \t]*[:=](?:[ \t]+|$)")
_INSERT = re.compile(r"(?i)\binsert\s+into\s+[\w.\"'`\[\]]{1,128}\s*\(([^()\n]{1,2048})\)\s*values\s*(?=\()")
_ROW = re.compile(r"\(((?:'(?:[^'\n\\]|''|\\.)*+'|\"[^\"\n]*+\"|[^()'\"\n]++)*+)\)\s*,?\s*")
_SQL_VALUE = re.compile(r"[NE]?'((?:[^'\n\\]|''|\\.)*+)'|\"([^\"\n]*+)\"|([^,'\"\n]++)")


def scrub_tables(text: str, work: WorkBudget) -> str:
    """The text without the values under a sensitive name in tables and lists of several lines."""
    candidates = [match.start() for match in _CANDIDATE.finditer(text) if _STEM.search(match[0].lower())]
    if not candidates:
        return text
    lines = text.split("\n")
    number = done = start = 0
    for candidate in candidates:
        number += text.count("\n", start, candidate)
        start = candidate
        if number < done:
            continue
        columns = _head(lines[number])
        if columns is not None:
            done = _scrub_rows(lines, number + 1, *columns, work)
        elif (opened := _OPENS_LIST.fullmatch(lines[number])) and name_sensitivity(opened[2]) is Sensitivity.CERTAIN:
            done = _scrub_items(lines, number + 1, opened, work)
    return "\n".join(lines)


def scrub_inserts(text: str, work: WorkBudget) -> str:
    """The text without the values of sensitive columns in SQL INSERT statements."""
    pieces: list[str] = []
    done = 0
    for found in _INSERT.finditer(text):
        if found.start() < done:
            continue
        sensitive = [name_sensitivity(name.strip("\"'`[] ")) for name in found[1].split(",")]
        if Sensitivity.CERTAIN not in sensitive:
            continue
        row = _ROW.match(text, found.end())
        while row is not None:
            for (start, end), sensitivity in zip(_sql_values(text, *row.span(1)), sensitive, strict=False):
                value = text[start:end]
                if sensitivity is Sensitivity.CERTAIN and _is_sql_secret(value):
                    work.step()
                    pieces += text[done:start], work.replace(value)
                    done = end
            row = _ROW.match(text, row.end())
    return "".join((*pieces, text[done:])) if pieces else text


def _sql_values(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The spans of the values of a row: of a quoted one without its quotes."""
    for value in _SQL_VALUE.finditer(text, start, end):
        if value.lastindex != 3 or value[0].strip():
            yield value.span(value.lastindex or 0)


def _is_sql_secret(value: str) -> bool:
    bare = value.strip()
    return not (bare[:1] in "?:%$@" or bare.isdigit() or nothing_to_redact(bare) or bare.lower() in ("null", "default"))


def _head(line: str) -> tuple[str, dict[int, str], int] | None:
    """The delimiter, the names of the sensitive columns and the number of all columns, if the line is the head of a table."""
    if len(line) > 2048 or "=" in line or not any(sign in line for sign in ("|", "│", ",", ";", "\t", "  ")):
        return None
    for delimiter in "│|,;\t ":
        cells = _cells(line, delimiter)
        if cells is None or not 2 <= len(cells) <= _MAX_CELLS:
            continue
        names = [line[start:end].strip(_QUOTES) for start, end in cells]
        if not all(map(_NAME.fullmatch, names)) or max(name.count(" ") for name in names) > 2:
            return None
        found = {place: name for place, name in enumerate(names) if _is_sensitive(name)}
        return (delimiter, found, len(cells)) if found else None
    return None


def _is_sensitive(name: str) -> bool:
    return name_sensitivity(name.replace(" ", "_")) is Sensitivity.CERTAIN


def _cells(line: str, delimiter: str) -> list[tuple[int, int]] | None:
    """The spans of the cells of a row; None if the line has no such delimiter."""
    if delimiter == " ":
        body = line.strip()
        edges = [match.span() for match in _GAPS.finditer(body)]
        start = line.find(body)
    elif delimiter in "|│":
        body = line.strip().strip("|│+")
        edges = [match.span() for match in _BARS.finditer(body)]
        start = line.find(body)
    else:
        body, start = line.rstrip("\r"), 0
        edges = list(_unquoted(body, delimiter))
    if not edges:
        return None
    begins = [0, *(end for _, end in edges)]
    ends = [*(begin for begin, _ in edges), len(body)]
    return [(start + begin, start + end) for begin, end in zip(begins, ends, strict=True)]


def _unquoted(line: str, delimiter: str) -> Iterator[tuple[int, int]]:
    quoted = False
    for at, char in enumerate(line):
        if char == '"':
            quoted = not quoted
        elif char == delimiter and not quoted:
            yield at, at + 1


def _scrub_rows(
    lines: list[str], at: int, delimiter: str, columns: dict[int, str], count: int, work: WorkBudget
) -> int:
    """Scrub the rows from line `at` on, and return the line after the table."""
    while at < len(lines) and lines[at].strip():
        if _RULER.fullmatch(lines[at]):
            at += 1
            continue
        cells = _cells(lines[at], delimiter)
        if cells is None or len(cells) != count:
            break
        for column in reversed(columns):
            lines[at] = _scrub_cell(lines[at], *cells[column], columns[column], work)
        at += 1
    return at


def _scrub_cell(line: str, start: int, end: int, name: str, work: WorkBudget) -> str:
    value = line[start:end].strip()
    start = line.find(value, start) if value else start
    if value[:1] in ('"', "'", "`") and len(value) > 2 and value[-1] == value[0]:
        start, value = start + 1, value[1:-1]
    if not value or is_placeholder(value) or not _is_cell_secret(value, name):
        return line
    work.step()
    return line[:start] + work.replace(value) + line[start + len(value) :]


def _is_cell_secret(value: str, name: str) -> bool:
    if is_secret(value, Sensitivity.LIKELY) or is_passphrase(value, name):
        return True
    return len(value) >= _MIN_MIXED and all(kind.search(value) for kind in _MIXED)


def _scrub_items(lines: list[str], at: int, opened: re.Match[str], work: WorkBudget) -> int:
    """Scrub the items of a list, or the values of a mapping, from line `at` on, and return the line after them."""
    indent = len(opened[1])
    while at < len(lines):
        item = _ITEM.fullmatch(lines[at])
        if item is None or not item[4] or len(item[1]) < indent:
            break
        entry = _ENTRY.match(item[4]) if not item[3] or item[4].count(item[3]) else None
        is_item = bool(item[2]) != bool(opened[3])
        if (opened[3] and item[4][0] in "]}") or not (is_item or (entry and not opened[3] and len(item[1]) > indent)):
            break
        key, start = (f"{opened[2]}_{entry[1]}", item.start(4) + entry.end()) if entry else (opened[2], item.start(4))
        value = lines[at][start : item.end(4)].strip(_QUOTES)
        start = lines[at].find(value, start)
        is_value = bool(value) and not is_placeholder(value) and not nothing_to_redact(value)
        if is_value and ((item[3] and not entry) or _is_cell_secret(value, key)):
            work.step()
            lines[at] = lines[at][:start] + work.replace(value) + lines[at][start + len(value) :]
        at += 1
    return at
