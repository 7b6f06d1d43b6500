"""The page on errors says what the code does."""

import runpy
from pathlib import Path

from discreet.errors.codes import ERROR_TABLE

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "errors.md").read_text(encoding="utf-8")


def test_the_tables_of_the_page_are_those_of_the_table() -> None:
    with_tables = runpy.run_path(str(DOCS / "write_errors.py"))["with_tables"]
    assert with_tables(PAGE) == PAGE, "run: make docs"


def test_every_row_of_the_table_is_on_the_page() -> None:
    for row in ERROR_TABLE:
        assert f"| −{-row.code} | {row.message or 'its own'} |" in PAGE
