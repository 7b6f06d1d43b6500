"""The page on settings says what the code does."""

import runpy
from pathlib import Path

from support.command_lines import load_settings

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "settings.md").read_text(encoding="utf-8")


def test_the_tables_of_the_page_are_those_of_the_code() -> None:
    with_tables = runpy.run_path(str(DOCS / "write_settings.py"))["with_tables"]
    assert with_tables(PAGE) == PAGE, "run: python docs/write_settings.py"


def test_the_example_file_of_the_page_is_accepted(tmp_path: Path) -> None:
    example = PAGE.partition("```toml\n")[2].partition("```")[0]
    (tmp_path / "discreet.toml").write_text(example, encoding="utf-8")
    (tmp_path / "documents").mkdir()
    settings = load_settings(["--config=discreet.toml"], {}, str(tmp_path))
    assert settings.apps == (f"{tmp_path}/app.py:files",)
    assert settings.request_timeout is None
