"""The page of the typed clients: its programs print what it says, and its tables name all there is."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from discreet.dialects.acp.client import AcpOptions
from discreet.dialects.client import ServerOptions
from discreet.dialects.lsp.client import LspOptions
from discreet.dialects.lsp.client_documents import BlockingDocuments, Documents
from discreet.dialects.mcp.client import McpOptions

from .test_docs_client import PROGRAM, check_program

PAGE = (Path(__file__).parents[2] / "docs" / "typed-clients.md").read_text(encoding="utf-8")
PROGRAMS = {name: (source, shown) for source, name, shown in PROGRAM.findall(PAGE)}


def first_cells(head: str) -> set[str]:
    table = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0]
    return {
        name for cell in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for name in re.findall(r"`([\w.]+)", cell)
    }


@pytest.mark.skipif(sys.platform == "win32", reason="the programs call `discreet` by a script for a POSIX shell")
@pytest.mark.parametrize("name", ["editor", "host", "prompts", "script"])
def test_a_program_of_the_page_prints_what_is_shown(name: str, tmp_path: Path) -> None:
    check_program(PROGRAMS, name, tmp_path)


def test_every_program_that_shows_what_it_prints_is_run() -> None:
    assert {name for name, (_, shown) in PROGRAMS.items() if shown} == {"editor", "host", "prompts", "script"}


def test_every_option_and_every_method_of_documents_is_there() -> None:
    taken = {
        name for options in (ServerOptions, LspOptions, McpOptions, AcpOptions) for name in options.__annotations__
    }
    assert first_cells("option") == taken
    for kind in (Documents, BlockingDocuments):
        methods = {f"documents.{name}" for name in vars(kind) if name[0] != "_"}
        assert first_cells("method") == methods
