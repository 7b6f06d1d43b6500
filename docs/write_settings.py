"""Writes the tables of settings.md from the table of settings: `python docs/write_settings.py`."""

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from discreet.daemon.settings import OPTIONS, Option

PAGE = Path(__file__).with_name("settings.md")
BEGIN = "<!-- The tables are written by write_settings.py. -->\n"
FOUND = {"yes": "yes", "lower": "only lower", "no": "no"}
MORE = {"import": "; in a file, a table [`[import.NAME]`](imports.md#in-a-settings-file) for any kind of import"}
"""What the page says besides the help: the links."""
END = "<!-- End of the tables. -->\n"


def with_tables(page: str) -> str:
    """The page with the tables of the code."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n".join(_tables()) + "\n\n" + END + after


def _tables() -> Iterator[str]:
    for group, options in groupby(OPTIONS, lambda option: option.group):
        yield f"\n### {group.capitalize()}\n"
        yield "| flag | variable | key | value | default | found file | meaning |"
        yield "| --- | --- | --- | --- | --- | --- | --- |"
        yield from map(_row, options)


def _row(option: Option) -> str:
    flags = ", ".join(f"`{flag}`" for flag in option.flags)
    variables = ", ".join(f"`{name}`" for name in (option.variable, option.row.presence_variable) if name)
    cells = (
        flags,
        variables,
        f"`{option.key}`",
        option.expected,
        option.default_text,
        FOUND[option.row.found_file],
        option.row.help + MORE.get(option.key, ""),
    )
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name}: {len(OPTIONS)} settings\n")
