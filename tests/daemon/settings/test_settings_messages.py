"""What the messages about wrong settings say, and other words for a value."""

from __future__ import annotations

import pytest

from discreet.daemon.settings import UsageError
from discreet.flags import FlagParser
from support.command_lines import load_settings

HERE = "/"
"""A directory without a settings file."""


@pytest.mark.parametrize("word", ["warning", "WARN", "Warning"])
def test_warning_means_warn(word: str) -> None:
    assert load_settings([f"--log-level={word}"], {}, HERE).log_level == "warn"
    assert load_settings([], {"DISCREET_LOG_LEVEL": word}, HERE).log_level == "warn"


def test_a_token_of_another_form_is_refused_with_its_source_and_not_repeated() -> None:
    for argv, environ, source in (
        (["--token=ada:secret"], {}, "--token"),
        ([], {"DISCREET_TOKEN": "ada:secret"}, "DISCREET_TOKEN"),
    ):
        with pytest.raises(UsageError) as refused:
            load_settings(argv, environ, HERE)
        assert str(refused.value).startswith(f"{source}: expected SUBJECT:SHA256")
        assert "secret" not in str(refused.value)


def test_a_flag_of_serve_is_known_where_another_verb_is_parsed() -> None:
    parser = FlagParser("discreet call", "METHOD")
    parser.add_argument("--server")
    with pytest.raises(UsageError, match="^--max-threads: a flag of serve: put it into --server$"):
        parser.read(["--max-threads=3"])
