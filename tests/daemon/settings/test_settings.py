"""Where settings come from, which source wins, what is refused, and what a file may set that merely stands there."""

from __future__ import annotations

import math
import os
import runpy
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from discreet.daemon.settings import OPTIONS, Option, Settings, SettingsFile, UsageError, resolve_settings
from discreet.flags import FlagParser, add_setting_flags, from_flags, to_argv
from discreet.imports.settings import ImportSettings
from support.command_lines import load_settings

HERE = "/"
"""A directory without a settings file."""

NAMED = ["--config=discreet.toml"]
"""A file that somebody named may set everything."""


class Sample(Struct, frozen=True):
    """One setting as each source writes it, and the value that it has to become. `values` are those of its flags."""

    values: list[str]
    text: str
    toml: str
    value: object


def one(text: str, toml: str | None = None, value: object = None) -> Sample:
    return Sample([text], text, toml or f'"{text}"', text if value is None else value)


def many(*texts: str) -> Sample:
    return Sample([*texts], ", ".join(texts), str([*texts]), texts)


SAMPLES = {
    "switch": Sample([""], "yes", "true", True),
    "integer": one("17", "17", 17),
    "seconds": Sample(["0.5e2"], "50", "50", 50.0),
    "directory": one("/"),
    "file": one("/tmp/log"),
    "readable": one(__file__),
    "word": one("https://i/"),
    "words": many("a:r", "b:w"),
    "tokens": many(f"ada:{'0' * 64}", f"bob:{'a' * 64}:read"),
    "files": many("a=/f", "b=/g"),
    "object": one("app:who"),
    "apps": many("app:one", "/pkg/mod.py:two"),
    "store": one("sqlite:/t.db"),
    "address": one("unix:/run/d.sock"),
    "url": one("https://a.b/"),
    "keys": one("https://i/k"),
    "dialect": one("mcp"),
    "imports": msgspec.structs.replace(
        many("a=/a.json", "b=https://b/c"),
        value=tuple(
            ImportSettings(name=n, openapi=s, expose=True) for n, s in (("a", "/a.json"), ("b", "https://b/c"))
        ),
    ),
}
"""By the kind of the setting. Of a choice each word is one, and of numbers those within all limits."""


def sample_of(option: Option) -> Sample:
    if option.kind == "choice":
        last = option.choices[-1]
        return Sample([last.upper()], last.title(), f'"{last}"', last)
    if option.kind in ("integer", "seconds") and not option.in_range(SAMPLES[option.kind].value):  # type: ignore[arg-type]
        return one(
            f"{option.row.limits[0]:.15g}", f"{option.row.limits[0]:.15g}", type(option.default)(option.row.limits[0])
        )
    return SAMPLES[option.kind]


def flags_of(option: Option) -> list[str]:
    """The flags that give the sample: one with `=`, the others without."""
    first, *rest = sample_of(option).values
    match option.kind:
        case "switch":
            return [option.flag]
        case "apps":
            return [first, *rest]
        case _:
            return [f"{option.flag}={first}", *(word for each in rest for word in (option.flag, each))]


every_option = pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)


def test_every_setting_is_in_the_table() -> None:
    assert [option.field for option in OPTIONS] == [*Settings.__struct_fields__]
    assert {option.kind for option in OPTIONS} == {*SAMPLES, "choice"}


def test_names_are_unique_in_every_source() -> None:
    for names in ([option.key for option in OPTIONS], [option.variable for option in OPTIONS]):
        assert len(set(names)) == len(OPTIONS)


@every_option
def test_every_setting_can_be_given_as_a_flag(option: Option) -> None:
    sample = sample_of(option)
    settings = load_settings(flags_of(option), {}, HERE)
    assert getattr(settings, option.field) == sample.value
    assert type(getattr(settings, option.field)) is type(sample.value)


@every_option
def test_every_setting_can_be_given_as_a_variable(option: Option) -> None:
    sample = sample_of(option)
    assert getattr(load_settings([], {option.variable: sample.text}, HERE), option.field) == sample.value


@every_option
def test_every_setting_can_be_given_in_the_file(option: Option, tmp_path: Path) -> None:
    sample = sample_of(option)
    for section in ("", "[serve]\n"):
        (tmp_path / "discreet.toml").write_text(f"{section}{option.key} = {sample.toml}")
        settings = load_settings(NAMED, {}, str(tmp_path))
        assert getattr(settings, option.field) == sample.value
        assert type(getattr(settings, option.field)) is type(sample.value)


def test_flags_win_over_variables_and_these_over_the_file_and_it_over_defaults(tmp_path: Path) -> None:
    (tmp_path / "discreet.toml").write_text("max-concurrency = 1\nmax-header-bytes = 101\nmax-message-bytes = 301")
    environ = {"DISCREET_MAX_CONCURRENCY": "2", "DISCREET_MAX_HEADER_BYTES": "102"}
    found = resolve_settings({}, environ, str(tmp_path))
    assert load_settings(["--max-concurrency=3"], environ, str(tmp_path)).max_concurrency == 3
    assert (found.settings.max_concurrency, found.settings.max_header_bytes) == (2, 102)
    assert found.settings.max_message_bytes == 301
    assert found.settings.framing is None
    assert found.sources == {
        "max_concurrency": "DISCREET_MAX_CONCURRENCY",
        "max_header_bytes": "DISCREET_MAX_HEADER_BYTES",
        "max_message_bytes": "discreet.toml: max-message-bytes",
    }


def test_a_bad_value_that_another_source_overrides_is_not_read() -> None:
    assert load_settings(["--framing=auto"], {"DISCREET_FRAMING": "bogus"}, HERE).framing == "auto"


# Flags


@pytest.mark.parametrize(
    "argv", [["--clientProcessId=77"], ["--clientProcessId", "77"], ["--stdio", "--parent-pid=77"]]
)
def test_what_editors_add_to_the_command_line_is_accepted(argv: list[str]) -> None:
    assert load_settings(argv, {}, HERE).parent_pid == 77


@pytest.mark.parametrize(
    "argv", ["a:b --ordered c:d", "--ordered a:b c:d", "a:b c:d --ordered", "--ordered -- a:b c:d"]
)
def test_apps_and_flags_stand_in_any_order(argv: str) -> None:
    settings = load_settings(argv.split(), {}, HERE)
    assert (settings.apps, settings.ordered) == (("a:b", "c:d"), True)


def test_the_last_of_a_repeated_flag_wins() -> None:
    assert load_settings(["--framing=auto", "--framing=newline"], {}, HERE).framing == "newline"


@every_option
def test_flags_can_be_written_again(option: Option) -> None:
    parser = FlagParser("again", "")
    add_setting_flags(parser)
    once = from_flags(parser.read(flags_of(option)))
    assert from_flags(parser.read(to_argv(once))) == once


def test_an_empty_scope_grants_none() -> None:
    assert load_settings(["--scope", ""], {}, HERE).scopes == ()
    assert load_settings([], {}, HERE).scopes is None


@pytest.mark.parametrize("text", ["0", "0.0", "none", "None"])
def test_no_request_timeout_is_said_as_zero_or_none(text: str) -> None:
    assert load_settings(["--request-timeout", text], {}, HERE).request_timeout is None


def test_an_unknown_flag_names_the_nearest_one() -> None:
    with pytest.raises(UsageError, match=r"--max-concurency.*--max-concurrency"):
        load_settings(["--max-concurency=3"], {}, HERE)


@pytest.mark.parametrize("flag", ["--root", "--fram=auto", "--ordered=yes", "--help", "-5", "--http"])
def test_a_command_line_that_cannot_be_read_is_refused(flag: str) -> None:
    with pytest.raises(UsageError):
        load_settings([flag], {}, HERE)


# Values


@every_option
def test_values_of_the_wrong_type_are_refused_and_the_place_is_named(option: Option, tmp_path: Path) -> None:
    for toml in ("{}", "1979-05-27", "[1]", "[true]", "[[]]"):
        (tmp_path / "discreet.toml").write_text(f"[serve]\n{option.key} = {toml}")
        with pytest.raises(UsageError, match=f"^discreet.toml: serve.{option.key}: expected "):
            load_settings(NAMED, {}, str(tmp_path))


NO_NUMBERS = ["", "ten", "0x10", "1e", " ", "1 0", "9" * 5000]


@pytest.mark.parametrize("option", [o for o in OPTIONS if o.kind in ("integer", "seconds")], ids=lambda o: o.key)
def test_numbers_are_those_within_the_limits(option: Option) -> None:
    least, most = option.row.limits
    for limit in (least, most):
        assert getattr(load_settings([f"{option.flag}={limit:.15g}"], {}, HERE), option.field) == limit
    below, words = (least - 1, ["1_0", "١٠", "+5", "5.0", "1e1"]) if option.kind == "integer" else (least - 0.0005, [])
    beyond = [f"{number:.15g}" for number in (below, most + 1, math.nan, math.inf, -math.inf)]
    for text in (*beyond, *words, *NO_NUMBERS):
        with pytest.raises(UsageError, match=f"^{option.flag}.*: expected "):
            load_settings([f"{option.flag}={text}"], {}, HERE)


@pytest.mark.parametrize(("key", "value"), [("framing", "hunter2"), ("token", "ada:hunter2")])
def test_a_message_names_the_source_and_not_the_value(key: str, value: str) -> None:
    variable = f"DISCREET_{key.upper()}"
    for argv, environ, source in (([f"--{key}={value}"], {}, f"--{key}"), ([], {variable: value}, variable)):
        with pytest.raises(UsageError, match=f"^{source}(, which is wrong)?: expected ") as caught:
            load_settings(argv, environ, HERE)
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "toml", ['max-concurrency = "64"', "max-concurrency = true", "drain-timeout = false", "ordered = 1", "apps = 'a:b'"]
)
def test_the_file_takes_no_lookalikes(toml: str, tmp_path: Path) -> None:
    (tmp_path / "discreet.toml").write_text(toml)
    with pytest.raises(UsageError):
        load_settings(NAMED, {}, str(tmp_path))


@pytest.mark.parametrize(
    "app", ["a", "a:", ":b", "a:b:c", "a.:b", "a-b:c", "a:1", "./a:b", "./a.py", "./.py:b", "a/b.py:b-c", "./\0.py:b"]
)
def test_an_app_is_a_module_or_a_file_and_a_name(app: str) -> None:
    with pytest.raises(UsageError, match="^APP: .*expected pkg.module:name or ./file.py:name$"):
        load_settings([app], {}, HERE)


@pytest.mark.parametrize("path", ["./a.py", "b/../a.py", "/x/my app,1.py", "./a:b.py", "./ü.py"])
def test_a_file_may_have_any_name(path: str) -> None:
    (app,) = load_settings([f"{path}:svc"], {}, "/x").apps
    assert app == f"{os.path.normpath(os.path.join('/x', path))}:svc"


def test_trio_has_to_be_installed() -> None:
    code = (
        "import sys; sys.modules['trio'] = None\n"
        "from discreet.daemon.settings import UsageError, resolve_settings\n"
        "from discreet.daemon.settings.option import RawValue\n"
        "try: resolve_settings({'backend': RawValue('trio', '--backend')}, {}, '/')\n"
        "except UsageError as exc: sys.exit(str(exc))\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert done.stderr.startswith("--backend: trio")


# Paths


def test_paths_become_absolute_from_the_working_directory_or_from_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "conf" / "docs").mkdir(parents=True)
    text = 'root = "docs"\nlog-file = "logs/x.log"\napps = ["./shop.py:shop"]\ncredential = ["key=key.txt"]\nidentity = "../who.py:who"'
    (tmp_path / "conf" / "any.toml").write_text(text)
    settings = load_settings(["--config=conf/any.toml"], {}, str(tmp_path))
    assert settings.root == str(tmp_path / "conf" / "docs")
    assert settings.log_file == str(tmp_path / "conf" / "logs/x.log")
    assert settings.apps == (f"{tmp_path}/conf/shop.py:shop",)
    assert settings.credentials == (f"key={tmp_path}/conf/key.txt",)
    assert settings.identity == f"{tmp_path}/who.py:who"
    flags = ["--root", ".", "./shop.py:shop", "--credential=key=key.txt"]
    settings = load_settings(flags, {}, str(tmp_path))
    assert settings.root == str(tmp_path)
    assert settings.apps == (f"{tmp_path}/shop.py:shop",)
    assert settings.credentials == (f"key={tmp_path}/key.txt",)


@pytest.mark.parametrize("root", ["no-such-directory", "discreet.toml", "", "a\0b"])
def test_the_root_has_to_be_a_directory(root: str, tmp_path: Path) -> None:
    (tmp_path / "discreet.toml").write_text("")
    with pytest.raises(UsageError, match="^--root: "):
        load_settings([f"--root={root}"], {}, str(tmp_path))


def test_stderr_as_log_file_overrides_a_file(tmp_path: Path) -> None:
    assert load_settings(["--log-file=-"], {"DISCREET_LOG": "x.log"}, str(tmp_path)).log_file == ""
    assert load_settings([], {}, str(tmp_path)).log_file is None


# Any input


@given(st.sampled_from(OPTIONS), st.text())
def test_any_text_is_a_value_or_a_usage_error(option: Option, text: str) -> None:
    try:
        value = getattr(resolve_settings({}, {option.variable: text}, "/").settings, option.field)
    except UsageError as exc:
        assert str(exc).startswith(option.variable)
    else:
        assert value is None or isinstance(value, (bool, int, float, str, tuple))


@given(st.lists(st.one_of(st.text(), st.sampled_from([name for o in OPTIONS for name in (o.flag, o.key)]))))
def test_any_command_line_is_settings_or_a_usage_error(argv: list[str]) -> None:
    try:
        assert isinstance(load_settings(argv, {}, "/"), Settings)
    except UsageError as exc:
        assert str(exc)


def test_loading_imports_nothing_that_only_errors_and_files_need(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom discreet.daemon.settings import resolve_settings\n"
        "resolve_settings({}, {'DISCREET_APPS': 'app:svc'}, sys.argv[1])\n"
        "sys.stdout.write(' '.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=30, check=True
    )
    late = "argparse tomllib difflib pathlib shutil logging asyncio anyio structlog importlib.util json".split()
    assert set(late).isdisjoint(done.stdout.split())


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


@pytest.mark.parametrize("word", ["warning", "WARN", "Warning"])
def test_warning_means_warn(word: str) -> None:
    assert load_settings([f"--log-level={word}"], {}, HERE).log_level == "warn"
    assert load_settings([], {"DISCREET_LOG_LEVEL": word}, HERE).log_level == "warn"


def test_a_flag_of_serve_is_known_where_another_verb_is_parsed() -> None:
    parser = FlagParser("discreet call", "METHOD")
    parser.add_argument("--server")
    with pytest.raises(UsageError, match="^--max-threads: a flag of serve: put it into --server$"):
        parser.read(["--max-threads=3"])


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://one:5432,two/tasks?target_session_attrs=read-write",
        "postgres:///tasks",
        "redis://one:6379/0",
        "rediss://one",
        "unix:///run/redis.sock",
    ],
)
def test_the_address_of_a_server_is_taken_as_it_is(address: str) -> None:
    assert load_settings(["--store", address], {}, HERE).store == address
    assert load_settings([], {"DISCREET_STORE": address}, HERE).store == address


@pytest.mark.parametrize(
    "address", ["postgresql://known, two/tasks", " redis://known", "mysql://known/tasks", "redis:known", "sqlite:"]
)
def test_another_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(UsageError, match="expected memory") as refused:
        load_settings(["--store", address], {}, HERE)
    assert "known" not in str(refused.value)


NO = (
    "apps app_dir root allow_write tokens identity jwt_issuer jwt_audience jwt_jwks jwt_algorithms auth_introspect auth_client credentials "
    "imports import_private store role max_ended_tasks ended_task_seconds push_private dialect acp_version tool_search tcp framing http grpc "
    "no_stdio http_mcp mcp_key card_key http_operations otel http_metrics http_open http_page http_url http_hosts http_origins "
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
    for toml in ("{}", "3", '"no such thing"', "[[1]]", toml_of(field)):  # it need not even be a value
        found = resolve_settings({}, {}, written(tmp_path, name, **{field: toml}))
        assert (found.settings, found.sources) == (plain, {})
        assert of[field].key in found.ignored
        assert f"--config {name}" in found.ignored
        assert "\n" not in found.ignored
    assert toml_of(field).strip('"') not in found.ignored.partition("ignored")[2] or of[field].kind == "switch"


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
