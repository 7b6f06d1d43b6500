"""What a settings file may set that nobody named, but that stands in the working directory of a stranger's project."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.daemon.settings import OPTIONS, Option, Settings, SettingsFile, UsageError, resolve_settings
from support.command_lines import load_settings

from .test_settings import sample_of

NO = (
    "apps app_dir root allow_write tokens identity jwt_issuer jwt_audience jwt_jwks jwt_algorithms credentials "
    "imports import_private store role max_ended_tasks ended_task_seconds push_private dialect tcp framing http "
    "no_stdio http_mcp http_operations otel http_metrics http_open http_page http_url http_hosts http_origins "
    "http_cert http_key parent_pid reload debug backend log_file"
).split()
YES = ("scopes ordered blocked_after http_keep_alive log_level log_format no_color").split()
FILES = {"discreet.toml": "", "pyproject.toml": "[tool.discreet]\n"}

of = {option.field: option for option in OPTIONS}
every_file = pytest.mark.parametrize("name", FILES)


def toml_of(field: str) -> str:
    return sample_of(of[field]).toml


def written(directory: Path, name: str, **values: str) -> str:
    lines = [f"{of[field].key} = {value}\n" for field, value in values.items()]
    (directory / name).write_text(FILES[name] + "".join(lines))
    return str(directory)


def test_every_setting_says_what_a_found_file_may_do() -> None:
    assert {option.field for option in OPTIONS if option.row.found_file == "no"} == set(NO)
    assert {option.field for option in OPTIONS if option.row.found_file == "yes"} == set(YES)
    lower = [option for option in OPTIONS if option.row.found_file == "lower"]
    assert {option.kind for option in lower} == {"integer", "seconds"}
    assert len(NO) + len(YES) + len(lower) == len(OPTIONS)


@every_file
@pytest.mark.parametrize("field", NO)
def test_what_could_run_code_or_loosen_a_limit_is_ignored_with_one_line(field: str, name: str, tmp_path: Path) -> None:
    plain = load_settings([], {}, str(tmp_path))
    found = resolve_settings({}, {}, written(tmp_path, name, **{field: toml_of(field)}))
    assert found.settings == plain
    assert found.sources == {}
    assert of[field].key in found.ignored
    assert f"--config {name}" in found.ignored
    assert "\n" not in found.ignored
    assert toml_of(field).strip('"') not in found.ignored.partition("ignored")[2] or of[field].kind == "switch"


@pytest.mark.parametrize("toml", ["{}", "3", '"no such thing"', "[[1]]"])
@pytest.mark.parametrize("field", NO)
def test_what_is_ignored_need_not_even_be_a_value(field: str, toml: str, tmp_path: Path) -> None:
    assert resolve_settings({}, {}, written(tmp_path, "discreet.toml", **{field: toml})).ignored


@every_file
@pytest.mark.parametrize("field", YES)
def test_what_can_do_neither_is_set(field: str, name: str, tmp_path: Path) -> None:
    found = resolve_settings({}, {}, written(tmp_path, name, **{field: toml_of(field)}))
    assert getattr(found.settings, field) == sample_of(of[field]).value
    assert not found.ignored


@pytest.mark.parametrize("option", [o for o in OPTIONS if o.row.found_file == "lower"], ids=lambda o: o.key)
def test_a_limit_may_be_lowered_and_not_raised(option: Option, tmp_path: Path) -> None:
    for value, allowed in ((option.row.limits[0], True), (option.default, True), (option.row.limits[1], False)):
        found = resolve_settings({}, {}, written(tmp_path, "discreet.toml", **{option.field: f"{value:.15g}"}))
        assert getattr(found.settings, option.field) == (value if allowed else option.default)
        assert bool(found.ignored) is not allowed
    if option.has_none_word:
        found = resolve_settings({}, {}, written(tmp_path, "discreet.toml", **{option.field: '"none"'}))
        assert getattr(found.settings, option.field) == option.default
        assert found.ignored


def test_all_that_is_ignored_is_one_line(tmp_path: Path) -> None:
    found = resolve_settings(
        {},
        {},
        written(tmp_path, "discreet.toml", **{field: toml_of(field) for field in (*NO, *YES)}, max_threads="1000"),
    )
    assert all(of[field].key in found.ignored for field in [*NO, "max_threads"])
    assert set(found.sources) == set(YES)


def test_what_a_flag_or_a_variable_sets_anyway_is_not_worth_a_line(tmp_path: Path) -> None:
    directory = written(tmp_path, "discreet.toml", framing='"newline"', store='"sqlite:x.db"')
    assert load_settings(["--framing=auto"], {"DISCREET_STORE": "memory"}, directory).framing == "auto"
    environ = {"DISCREET_STORE": "memory", "DISCREET_FRAMING": "auto"}
    assert not resolve_settings({}, environ, directory).ignored


def test_what_a_found_file_may_set_is_checked_like_any_value(tmp_path: Path) -> None:
    for field, toml in (("max_threads", '"lots"'), ("log_level", '"loud"'), ("scopes", '"a"')):
        with pytest.raises(UsageError, match=f"^discreet.toml: {of[field].key}: expected "):
            resolve_settings({}, {}, written(tmp_path, "discreet.toml", **{field: toml}))


@every_file
def test_a_named_file_may_set_everything_and_the_found_one_is_not_read(name: str, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "discreet.toml").write_text("this is no TOML")
    written(tmp_path / "here", name, push_private="true", max_threads="999")
    found = resolve_settings({}, {}, str(tmp_path), SettingsFile(f"here/{name}"))
    assert (found.settings.push_private, found.settings.max_threads, found.ignored) == (True, 999, "")


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("max-threads = 3", encoding="utf-8-sig")
    assert load_settings(["--config=c.toml"], {}, str(tmp_path)).max_threads == 3


def test_a_named_file_has_to_exist(tmp_path: Path) -> None:
    for name in ("none.toml", "no/such.toml"):
        with pytest.raises(UsageError, match="^--config: .*toml$"):
            load_settings([f"--config={name}"], {}, str(tmp_path))
    with pytest.raises(UsageError, match=r"^\."):
        load_settings(["--config=."], {}, str(tmp_path))


def test_isolated_reads_neither_a_file_nor_the_environment(tmp_path: Path) -> None:
    (tmp_path / "discreet.toml").write_text("this is no TOML")
    environ = {option.variable: "no value of anything" for option in OPTIONS} | {
        "DISCREET_APP": "misspelt",
        "NO_COLOR": "1",
    }
    found = load_settings(["--isolated", "--max-threads=3"], environ, str(tmp_path))
    assert found == Settings(root=str(tmp_path), max_threads=3)
    with pytest.raises(UsageError, match="--isolated .* --config"):
        load_settings(["--isolated", "--config=discreet.toml"], {}, str(tmp_path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[server]\nordered = true", "server: unknown key; nearest: serve"),
        ('apps = "app:s"', 'apps: expected an array of pkg.module:name or ./file.py:name: apps = ["app:s"]'),
        ('apps = "no app"', "apps: expected an array of pkg.module:name or ./file.py:name"),
        ('scope = "a"', "scope: expected an array of words"),
        ("credential = 'a=b'", "credential: expected an array of NAME=FILE"),
    ],
)
def test_a_common_mistake_is_answered_with_what_was_meant(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "discreet.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        load_settings(["--config=discreet.toml"], {}, str(tmp_path))
    assert words in str(caught.value)
