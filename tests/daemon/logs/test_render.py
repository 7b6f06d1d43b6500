"""Lines as they are rendered: forms, order of fields, nothing forged, nothing secret, nothing too long."""

from __future__ import annotations

import base64
import json
import re
import shlex
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.daemon.lifecycle import State
from discreet.daemon.logs import ConfiguredPath
from discreet.daemon.logs.line import fallback_line
from discreet.daemon.logs.logger import MAX_BYTES, MAX_EVENTS, LogEvent
from discreet.daemon.logs.render import MAX_FIELD, Renderer
from discreet.errors.redaction import unregister

Form: TypeAlias = Literal["console", "keyvalue", "json", "journald"]

FORMS: tuple[Form, ...] = ("console", "keyvalue", "json", "journald")

WHEN = 1_700_000_000.123
STAMP = "2023-11-14T22:13:20.123Z"

SECRET = "correct-horse-battery-9"
ENVIRON = {"DEPLOY_TOKEN": SECRET}
SHAPED = "ghp_" + "a1B2c3D4e5F6" * 3

every_form = pytest.mark.parametrize("form", FORMS)


def render(form: Form, fields: dict[str, object], *, color: bool = False, name: str = "e", rank: int = 20) -> str:
    event = LogEvent(WHEN, rank, name, fields, 0, 0)
    return Renderer(form, color=color, environ=ENVIRON).line(event).decode()


def test_keyvalue_lines_start_with_the_same_five_fields() -> None:
    line = render("keyvalue", {"took_ms": 1.5, "id": 7, "method": "files/read", "ok": True, "none": None})
    assert line == f"timestamp={STAMP} level=info event=e id=7 method=files/read took_ms=1.5 ok=true none=null\n"


def test_journald_lines_carry_the_priority_of_their_level() -> None:
    prefixes = [render("journald", {}, rank=rank)[:3] for rank in (10, 20, 30, 40)]
    assert prefixes == ["<7>", "<6>", "<4>", "<3>"]


def test_json_lines_keep_types_and_nesting() -> None:
    fields: dict[str, object] = {"n": 1, "f": 1.5, "t": True, "none": None, "list": [1, {"a": "b"}], "text": "a\nb"}
    assert json.loads(render("json", fields)) == {"timestamp": STAMP, "level": "info", "event": "e", **fields}


def test_the_console_has_colour_only_when_asked() -> None:
    plain = render("console", {"size": 12})
    colored = render("console", {"size": 12}, color=True)
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[\d+m", "", colored).split() == plain.split()
    assert plain.split() == [STAMP, "[info", "]", "e", "size=12"]
    assert "\x1b[" in colored
    for form in FORMS[1:]:
        assert "\x1b" not in render(form, {"size": 12}, color=True)


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        (b"7", 7),
        (b'"seven"', "seven"),
        (b"1.0", "1.0"),
        (b"1e400", "1e400"),
        (b"9007199254740993", 9007199254740993),
        (b"null", None),
        (b'"a\\nb"', "a\nb"),
        (b"broken", "broken"),
        (b"9" * 5000, "9" * 5000),
        (b"\xff", "\\xff"),
    ],
)
def test_an_id_may_be_the_bytes_of_its_json_text(raw: bytes, seen: object) -> None:
    assert json.loads(render("json", {"id": raw}))["id"] == seen


@every_form
def test_a_name_can_neither_forge_nor_replace_a_field(form: Form) -> None:
    line = render(form, {"a=b c\n": 1, "level": "error", "timestamp": 0, "event": "other", "exc_info": 1, "stack": "s"})
    assert line.count("\n") == 1
    if form == "json":
        seen = json.loads(line)
        assert (seen["level"], seen["event"], seen["level_"], seen["a_b_c_"]) == ("info", "e", "error", 1)
    else:
        assert {"a_b_c_=1", "level_=error", "timestamp_=0", "event_=other", "exc_info_=1", "stack_=s"} <= fields_of(
            line
        )


def fields_of(line: str) -> set[str]:
    """The fields of a line of text, quoted ones unquoted, as a shell would split it."""
    return set(shlex.split(line))


@settings(max_examples=150, deadline=None)
@given(form=st.sampled_from(FORMS), color=st.booleans(), key=st.text(max_size=12), value=st.text(max_size=60))
def test_any_text_gives_one_line_without_control_characters(form: Form, color: bool, key: str, value: str) -> None:
    line = RENDERERS[form, color].line(LogEvent(WHEN, 30, "e", {key: value, "nested": {key: [value]}}, 0, 0)).decode()
    text = re.sub(r"\x1b\[\d+m", "", line) if color and form == "console" else line
    assert text.endswith("\n")
    assert text[:-1].isprintable()
    if form == "json":
        assert json.loads(line)["event"] == "e"


HOSTILE = [
    "-----BEGIN RSA PRIVATE KEY-----",
    "Authorization: ",
    "Bearer ",
    "MIIEpAIBAAKCAQEA7",
    "password",
    "secret=",
    "token",
    "--api-key",
    SHAPED,
    "/home/bob/notes.txt",
    "C:\\Users\\bob\\notes.txt",
    *"\"'\\{}[]:=,/ \n\t\x1b\u2028",
]
"""Pieces that make the scrubber cut, next to those that make up JSON's own syntax."""


RENDERERS = {(form, color): Renderer(form, color=color, environ={}) for form in FORMS for color in (False, True)}

ANY_TEXT = st.one_of(st.text(max_size=40), st.lists(st.sampled_from(HOSTILE), max_size=8).map("".join))

QUOTED_FIELDS = re.compile(r'(?<=\s)([\w.-]+)=("(?:[^"\\]|\\.)*"|[^\s="\\]+)(?=\s)')
"""The fields of a line of text, as docs/logging.md describes them."""

READABLE: dict[str, object] = {"size": 3, "code": -32603, "reason": "oversize", "ok": True, "path_count": 12}


@settings(max_examples=300, deadline=None)
@given(
    form=st.sampled_from(FORMS),
    method=ANY_TEXT,
    text=ANY_TEXT,
    nested=st.dictionaries(ANY_TEXT, st.lists(ANY_TEXT, max_size=3), max_size=2),
)
def test_no_text_of_a_field_changes_another_field(form: Form, method: str, text: str, nested: object) -> None:
    fields = {"method": method, "id": text, "text": text, **READABLE, "nested": nested, "exc": ValueError(text)}
    line = RENDERERS[form, False].line(LogEvent(WHEN, 30, "request.failed", fields, 0, 0)).decode()
    if form == "json":
        seen = json.loads(line)
        assert list(seen) == ["timestamp", "level", "event", *fields]
        assert {name: seen[name] for name in READABLE} == READABLE
        return
    if form == "console":
        line, *traceback = line.splitlines(keepends=True)
        assert traceback
        assert all(row.startswith("    ") and row[:-1].isprintable() for row in traceback)
        del fields["exc"]
        assert line.startswith(f"{STAMP} [warn     ] request.failed ")
    else:
        assert line.removeprefix("<4>").startswith(f"timestamp={STAMP} level=warn event=request.failed ")
    shown = dict(QUOTED_FIELDS.findall(line))
    assert QUOTED_FIELDS.sub("", line[line.index("request.failed") :]).split() == ["request.failed"]
    assert list(shown)[-len(fields) :] == list(fields)
    assert (
        shown.items() >= {"size": "3", "code": "-32603", "reason": "oversize", "ok": "true", "path_count": "12"}.items()
    )


@every_form
def test_one_huge_field_leaves_the_others_readable(form: Form) -> None:
    huge = [["x" * MAX_FIELD] * 20] * 20
    line = render(form, {"huge": huge, "items": [1] * 20_000, "reason": "oversize", "size": 3})
    assert "oversize" in line
    assert "size" in line.split("oversize")[1]


@every_form
def test_names_that_become_equal_leave_each_other_readable(form: Form) -> None:
    line = render(form, {"a b": "one", "a_b": "two", "a:b": "three"})
    assert all(word in line for word in ("one", "two", "three"))


@every_form
@pytest.mark.parametrize("word", ["timestamp", "request.failed", "services/list", "path_count", "myservice.views"])
def test_a_known_secret_of_words_does_not_hide_what_the_program_itself_writes(form: Form, word: str) -> None:
    fields: dict[str, object] = {"method": "services/list", "path_count": 1, "logger": "myservice.views", "text": word}
    event = LogEvent(WHEN, 30, "request.failed", fields, 0, 0)
    line = Renderer(form, color=False, environ={"DEPLOY_TOKEN": word}).line(event).decode()
    try:
        assert line.count("request.failed") == 1
        assert line.count("services/list") == 1
        assert line.count("path_count") == 1
        assert line.count("myservice.views") == 1
        assert "<redacted>" in line
        if form != "console":
            assert "timestamp" in line
    finally:
        unregister(word)


@every_form
@pytest.mark.parametrize(
    "fields",
    [
        {"text": f"got {SECRET} back"},
        {"nested": {"list": [{"deep": SECRET}]}},
        {"nested": {"api_key": "abcdefgh12345678"}},
        {"password": "abcdefgh12345678"},
        {"encoded": base64.b64encode(SECRET.encode()).decode()},
        {"key": {SECRET: 1}},
        {SECRET: 1},
        {"exc": ValueError(SECRET)},
        {"exc": ValueError({"password": "abcdefgh12345678"})},
        {"text": "x" * (MAX_FIELD - 6) + SHAPED},
        {"list": ["x" * (MAX_FIELD // 2), "y" * (MAX_FIELD // 2 - 10), SHAPED]},
    ],
    ids=lambda value: next(iter(value)),
)
def test_no_secret_reaches_the_line(form: Form, fields: dict[str, object]) -> None:
    line = re.sub(r"\x1b\[\d+m", "", render(form, fields, color=True))
    for secret in (SECRET, "abcdefgh12345678", "a1B2c3", base64.b64encode(SECRET.encode()).decode()[:20]):
        assert secret not in line
    assert "unrendered" not in line


@every_form
def test_no_secret_of_a_chain_of_exceptions_reaches_the_line(form: Form) -> None:
    try:
        try:
            raise KeyError(SECRET)
        except KeyError as cause:
            cause.add_note(f"note: {SECRET}")
            raise ExceptionGroup(
                "several", [ValueError(f"token={SHAPED}"), OSError(2, "gone", f"/home/bob/{SECRET}")]
            ) from cause
    except ExceptionGroup as group:
        line = render(form, {"exc": group})
    assert SECRET not in line
    assert "a1B2c3" not in line
    assert "/home/bob" not in line
    for kind in ("KeyError", "ExceptionGroup", "ValueError", "FileNotFoundError"):
        assert kind in line


@every_form
@pytest.mark.parametrize(
    "fields", [{"text": "x" * 50_000}, {"list": ["y" * 5_000] * 10}, {"map": {"a": {"b": "z" * 99_999}}}]
)
def test_a_field_is_cut_to_its_limit(form: Form, fields: dict[str, object]) -> None:
    line = render(form, fields)
    assert 0.9 * MAX_FIELD < len(line) < 1.1 * MAX_FIELD
    assert "<cut>" in line


@every_form
def test_a_long_traceback_keeps_the_exception_s_name(form: Form) -> None:
    def recurse(depth: int, /, *, text: str = "x" * 50) -> None:
        if not depth:
            raise LookupError("the end of it all")
        (recurse_again if depth % 2 else recurse)(depth - 1)

    def recurse_again(depth: int) -> None:
        recurse(depth - 1) if depth else recurse(0)

    try:
        recurse(200)
    except LookupError as exc:
        line = render(form, {"exc": exc})
    assert "Traceback (most recent call last)" in line
    assert "LookupError: the end of it all" in line
    assert "<cut>" in line


ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "logging.md"


def test_the_document_shows_lines_as_they_are() -> None:
    fields: dict[str, object] = {"method": "files/read", "id": 7, "reason": "oversize"}
    event = LogEvent(1_769_860_800.123, 30, "request.failed", fields, 0, 0)
    text = DOCUMENT.read_text()
    for form in FORMS:
        line = Renderer(form, color=False, environ={}).line(event).decode()
        assert f"\n    {line}" in text


def test_the_document_knows_every_event_and_no_other() -> None:
    parts = ("agents", "client", "daemon", "dialects", "files", "gateway", "imports")
    paths = [*(ROOT / "src" / "discreet").glob("*.py"), *(ROOT / "src" / "discreet" / "debugger").glob("*.py")]
    paths += [path for part in parts for path in (ROOT / part).rglob("*.py")]
    source = "".join(path.read_text() for path in paths)
    logs = r"log(?:ger)?\.(?:debug|info|warning|error|record|always)|RepeatedWarning|self\._warn"
    calls = re.findall(rf'\b(?:{logs})\([^"]*?"([a-z]+\.[a-z_]+)"', source)
    named = set(calls) | {"logs.dropped", "stdout.stray", "stderr.stray"}
    named |= {f"daemon.{state}" for state in get_args(State) if state != "starting"}
    table = "".join(line.split("|")[1] for line in DOCUMENT.read_text().splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`([a-z]+\.[a-z_]+)`", table)) == named


def test_the_document_knows_the_limits() -> None:
    text = DOCUMENT.read_text()
    assert f"{MAX_EVENTS:,} events" in text
    assert f"{MAX_BYTES // 2**20} MiB" in text
    assert f"{MAX_FIELD:,} characters" in text


@every_form
def test_the_line_for_what_can_t_be_rendered_holds_none_of_it(form: Form) -> None:
    odd = type("a\nb", (Exception,), {})
    line = fallback_line(LogEvent(WHEN, 40, "request.failed", {"text": SECRET}, 0, 0), form, odd()).decode()
    assert line.count("\n") == 1
    if form == "json":
        assert json.loads(line) == {
            "timestamp": STAMP,
            "level": "error",
            "event": "request.failed",
            "unrendered": "a_b",
        }
    else:
        assert line.removeprefix("<3>") == f"timestamp={STAMP} level=error event=request.failed unrendered=a_b\n"
    assert line.startswith("<3>") == (form == "journald")


@every_form
@pytest.mark.parametrize("path", ["/home/ann/run/agent.sock", "unix:/var/lib/two words/agent.sock"])
def test_a_path_that_the_operator_has_configured_is_shown_whole_and_no_other(form: Form, path: str) -> None:
    line = render(form, {"url": ConfiguredPath(path), "path": path})
    assert line.count(path) == 1
    assert line.count("<path>/") == 1


@every_form
def test_secrets_in_a_configured_path_are_scrubbed(form: Form) -> None:
    line = render(form, {"url": ConfiguredPath(f"/run/{SHAPED}/{SECRET}.sock")})
    assert SHAPED not in line
    assert SECRET not in line
