"""How settings are read from environment variables."""

import pytest

from discreet.daemon.settings import OPTIONS, Settings, UsageError
from support.command_lines import load_settings

HERE = "/"
"""A directory without a settings file."""


def test_an_empty_variable_counts_as_unset() -> None:
    assert load_settings([], {option.variable: "" for option in OPTIONS}, "/") == Settings(root="/")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("DISCREET_MAX_CONCURENCY", "DISCREET_MAX_CONCURRENCY"),
        ("DISCREET_LOG_FILE", "DISCREET_LOG"),
        ("DISCREET_ALLOW_WRITES", "DISCREET_ALLOW_WRITE"),
        ("DISCREET_SCOPES", "DISCREET_SCOPE"),
        ("DISCREET_framing", "DISCREET_FRAMING"),
    ],
)
def test_a_misspelt_variable_is_refused_and_the_meant_one_named(name: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"^{name}: .*{meant}$"):
        load_settings([], {name: "1"}, HERE)


def test_variables_of_other_programs_are_left_alone() -> None:
    environ = {"DISCREET_BOT_TOKEN_URL": "x", "DISCREETLY": "y", "ORDERED": "1"}
    assert load_settings([], environ, "/") == Settings(root="/")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"NO_COLOR": "1"}, True),
        ({"NO_COLOR": "0"}, True),
        ({"NO_COLOR": ""}, False),
        ({"NO_COLOR": "1", "DISCREET_NO_COLOR": "false"}, False),
    ],
)
def test_no_color_is_set_by_being_there(environ: dict[str, str], expected: bool) -> None:
    assert load_settings([], environ, HERE).no_color is expected
