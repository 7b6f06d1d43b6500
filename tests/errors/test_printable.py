"""Nothing that moves a cursor reaches a terminal, whatever the text."""

from __future__ import annotations

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors.printable import printable, printable_json

CONTROLS = "".join(map(chr, (*range(0x20), 0x7F, *range(0x80, 0xA0), 0x2028, 0x202E, 0xFEFF)))

texts = st.text(st.characters() | st.sampled_from(CONTROLS))


@given(text=texts)
def test_a_text_becomes_one_line_that_prints(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown


@pytest.mark.parametrize("char", CONTROLS)
def test_a_character_that_does_not_print_is_told_by_its_escape(char: str) -> None:
    assert ast.literal_eval(f'"{printable(char)}"') == char


@given(text=texts, ascii_only=st.booleans())
def test_a_document_prints_and_says_the_same(text: str, ascii_only: bool) -> None:
    document = json.dumps({"text": text}, ensure_ascii=ascii_only, indent=1)
    shown = printable_json(document)
    assert shown.replace("\n", "").isprintable()
    assert json.loads(shown) == {"text": text}
