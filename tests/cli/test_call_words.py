"""The words of `discreet call`: params, flags, timeouts, and the exit statuses in the docs."""

from __future__ import annotations

import argparse
import re
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import Raw

from discreet.cli.commands import load_verb, verbs
from discreet.cli.exit_status import EXIT_OF_HTTP, exit_status
from discreet.cli.main import main
from discreet.cli.request import MAX_READ_BYTES, MAX_TOKEN_CHARS, Params, parse_params
from discreet.cli.verbs.call import remote_call_of
from discreet.client import MCP, PLAIN, ConnectionFailed, ConnectionLoss, InvalidReply, RequestTimeout, StreamOverrun
from discreet.client.dialects import DIALECTS
from discreet.client.errors import remote_error
from discreet.daemon.settings import UsageError
from discreet.errors import ERROR_TABLE, failures
from discreet.errors.wire import encode_error

TOKEN: Final = "s3cr3t-of-ann"


def parsed(*words: str) -> argparse.Namespace:
    return load_verb("call")[0].read(words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], None),
        (["path=README.md"], {"path": "README.md"}),
        (["n=10", "deep=true", "none=null"], {"n": Raw(b"10"), "deep": Raw(b"true"), "none": Raw(b"null")}),
        (['tag="10"', "empty="], {"tag": Raw(b'"10"'), "empty": ""}),
        (["equation=a=b"], {"equation": "a=b"}),
        (["big=9007199254740993", "huge=1e400"], {"big": Raw(b"9007199254740993"), "huge": Raw(b"1e400")}),
        (["list=[1,\n 2]", "text={no json"], {"list": Raw(b"[1,2]"), "text": "{no json"}),
        (['{"a": 1}'], Raw(b'{"a":1}')),
        (["[1, 2]"], Raw(b"[1,2]")),
    ],
)
def test_words_become_params(words: list[str], expected: object) -> None:
    assert parse_params(words).value == expected


@pytest.mark.parametrize(
    "words",
    [["alone"], ["=x"], ["a=1", "a=2"], ["{broken"], ["[1", "2]"], ["a=\udcff"], ["{\udcff}"]],
)
def test_words_that_are_no_params_are_wrong_usage(words: list[str]) -> None:
    with pytest.raises(UsageError):
        parse_params(words)


def at_stdin(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(text)))


def test_params_may_come_from_a_file_and_from_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text").write_bytes("5\r\né\n".encode())
    assert parse_params([f"a=@{tmp_path / 'text'}", "b=1"]).value == {"a": "5\r\né\n", "b": Raw(b"1")}
    at_stdin(monkeypatch, b'\xef\xbb\xbf{"a": 1}')  # its mark of the byte order is ignored
    assert parse_params([], "-") == Params(Raw(b'{"a":1}'))
    at_stdin(monkeypatch, b"1\n")
    assert parse_params(["a=@-"]).value == {"a": "1\n"}
    at_stdin(monkeypatch, b"\n")
    with pytest.raises(UsageError, match="stdin is empty"):
        parse_params([], "-")


def test_a_file_that_holds_no_param_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MAX_READ_BYTES + 1)
    for path in ("bytes", "large", "none", ".", "\0"):
        with pytest.raises(UsageError, match="^a: "):
            parse_params([f"a=@{tmp_path / path}"])


class _Interrupted:
    """A stdin at which somebody presses Ctrl-C."""

    @property
    def buffer(self) -> BytesIO:
        raise KeyboardInterrupt


def test_an_interrupt_while_stdin_is_read_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", _Interrupted())
    assert main(["call", "m", "--json=-"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("text", ["10", '"x"', "null", "{", ""])
def test_params_as_json_must_be_an_object_or_an_array(text: str) -> None:
    with pytest.raises(UsageError):
        parse_params([], text)


URL = "--url=http://127.0.0.1:9/"


@pytest.mark.parametrize(
    "words",
    [
        ["--json=-", "--token-file=-"],
        ["a=@-", "--token-file=-"],
        ["a=1", "--json={}"],
        ["--server=x", "--app=a:b"],
        ["--server=x", "--root=."],
        ["--server=x", "--scope=a"],
        ["--server=x", "--allow-write"],
        ["--server='"],
        ["--server="],
        ["--stream", "--retry=1"],
        ["--url=htp://127.0.0.1/"],
        ["--url=127.0.0.1:8000"],
        [f"--url=http://ann:{TOKEN}@127.0.0.1/"],
        [URL, "--server=x"],
        [URL, "--app=x"],
        [URL, "--root=."],
        [URL, "--log-level=info"],
        [URL, "--dialect=mcp"],
        [URL, "--framing=newline"],
        [URL, "--progress"],
        [URL, "--service-param=host=x"],
        [URL, f"--service-param=authorization={TOKEN}"],
        ["--token-env=NO_SUCH_VARIABLE"],
        ["--token-file=no/such/file"],
        ["--token-file=."],
        ["--token-file=empty"],
        ["--token-file=lines"],
        ["--token-file=long"],
        ["--token-file=binary"],
        ["--token-file=a\0b"],
        ["--token-file=token", "--token-env=HOME"],
        [f"--service-param=Authorization=Bearer {TOKEN}"],
        ["--service-param=alone"],
        ["--service-param==x"],
        ["--service-param=a=1", "--service-param=A=2"],
        ["--service-param=a=\udcff"],
        *([f"--timeout={text}"] for text in ("0", "-1", "nan", "inf", "soon")),
        *([f"--retry={text}"] for text in ("-1", "two", "1.5", "1e3", "")),
    ],
)
def test_flags_that_are_wrong_or_contradict_each_other_are_wrong_usage_that_shows_no_token(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "lines").write_text(f"{TOKEN}\n{TOKEN}\n")
    (tmp_path / "long").write_text("x" * (MAX_TOKEN_CHARS + 1))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError) as raised:
        remote_call_of(parsed("m", *words))
    assert TOKEN not in str(raised.value)


def test_a_scheme_before_the_token_stays(tmp_path: Path) -> None:
    (tmp_path / "badge").write_text("Badge 7")
    request = remote_call_of(parsed("m", f"--token-file={tmp_path / 'badge'}"))
    assert request.service_params == {"authorization": "Badge 7"}


@pytest.mark.parametrize(
    ("words", "dialect", "framing"),
    [
        ([], PLAIN, None),
        (["--dialect=mcp"], MCP, None),
        (["--dialect=mcp", "--framing=content-length"], MCP, "content-length"),
    ],
)
def test_the_framing_is_the_dialects_unless_it_is_named(words: list[str], dialect: Any, framing: str | None) -> None:
    request = remote_call_of(parsed("m", "--server=x", *words))
    assert (request.dialect, request.framing) == (dialect, framing)


def test_without_a_server_it_is_discreet_serve_with_the_same_framing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISCREET_LOG_LEVEL", raising=False)
    request = remote_call_of(parsed("m", "--app", "a:b", "--app", "c:d", "--root", "x", "--framing", "newline"))
    assert list(request.server) == [
        *(sys.executable, "-P", "-m", "discreet", "serve", "a:b", "c:d", "--root=x"),
        *("--dialect=plain", "--framing=newline", "--log-level=error"),
    ]


@pytest.mark.parametrize(
    ("words", "variable", "given"),
    [
        ([], None, ["--log-level=error"]),
        ([], "info", []),
        (["--isolated"], "info", ["--log-level=error"]),
        (["--log-level=debug"], "info", ["--log-level=debug"]),
    ],
)
def test_the_daemon_of_a_call_logs_errors_unless_told_otherwise(
    words: list[str], variable: str | None, given: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable is None:
        monkeypatch.delenv("DISCREET_LOG_LEVEL", raising=False)
    else:
        monkeypatch.setenv("DISCREET_LOG_LEVEL", variable)
    command = remote_call_of(parsed("m", *words)).server
    assert [word for word in command if word.startswith("--log-level")] == given


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], 30.0),
        (["--stream"], None),
        (["--timeout=2.5"], 2.5),
        (["--stream", "--timeout=1"], 1),
        (["--timeout=none"], None),
    ],
)
def test_the_timeout_depends_on_what_is_waited_for(words: list[str], expected: float | None) -> None:
    assert remote_call_of(parsed("m", *words)).timeout == expected


@pytest.mark.parametrize(("words", "seconds"), [([], 30.0), (["--timeout=2.5"], 2.5), (["--timeout=none"], None)])
def test_a_generated_client_is_waited_for_as_long(words: list[str], seconds: float | None) -> None:
    assert load_verb("generate")[0].read(["python", *words]).timeout == seconds


def test_every_row_of_the_table_of_errors_has_an_exit_status() -> None:
    for row in ERROR_TABLE:
        assert (
            row.failure is failures.DomainFailure or f"{EXIT_OF_HTTP[row.http_status]}" in verbs()["call"].statuses
        ), row.protocol_code


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (failures.InvalidRequest("duplicate-id"), 3),
        (failures.InvalidParams("n", "integer", "null"), 3),
        (failures.MethodNotFound(), 4),
        (failures.AuthenticationRequired(("bearer",), "x"), 5),
        (failures.InsufficientPermissions(("a",)), 5),
        (failures.DomainFailure("OUT_OF_STOCK", "None left", http_status=404), 6),
        (failures.TimedOut(), 7),
        (failures.Overloaded(), 8),
        (failures.Cancelled(), 8),
        (failures.Internal(), 9),
    ],
    ids=lambda it: type(it).__name__,
)
def test_each_class_of_error_has_its_exit_status(failure: Any, status: int) -> None:
    assert exit_status(remote_error(encode_error(failure))) == status


def test_the_errors_of_the_client_itself_have_an_exit_status() -> None:
    errors = [ConnectionFailed(ConnectionLoss("gone")), InvalidReply("?"), StreamOverrun("?"), RequestTimeout("m", 1.0)]
    assert [exit_status(error) for error in errors] == [10, 10, 10, 7]
    assert exit_status(remote_error(b'{"code":7,"message":"Seven"}')) == 9


def test_the_page_names_every_exit_status_and_every_flag() -> None:
    page = (Path(__file__).parents[2] / "docs" / "call.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE)
    assert dict(rows) == verbs()["call"].all_statuses
    flags = {name for flag in load_verb("call")[0].flags() for name in flag.names} - {"-h", "--help"}
    assert {flag for flag in flags if f"`{flag}" not in page} == set()
    assert {name for name in DIALECTS if f"`{name}`" not in page} == set()
