"""The words of `discreet call`: params, flags, timeouts, and the exit statuses in the docs."""

from __future__ import annotations

import argparse
import re
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from msgspec import Raw

from discreet.cli.commands import load_verb, verbs
from discreet.cli.exit_status import EXIT_OF_HTTP, exit_status
from discreet.cli.main import main
from discreet.cli.request import MAX_READ_BYTES, Params, parse_params
from discreet.cli.verbs.call import remote_call_of
from discreet.client import ConnectionFailed, ConnectionLoss, InvalidReply, RequestTimeout, StreamOverrun
from discreet.client.errors import remote_error
from discreet.daemon.settings import UsageError
from discreet.errors import ERROR_TABLE, DomainFailure, Internal
from discreet.errors.wire import encode_error


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


def test_params_may_come_from_a_file_and_from_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text").write_bytes("5\r\né\n".encode())
    assert parse_params([f"a=@{tmp_path / 'text'}", "b=1"]).value == {"a": "5\r\né\n", "b": Raw(b"1")}
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b'{"a": 1}')))
    assert parse_params([], "-") == Params(Raw(b'{"a":1}'))
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"1\n")))
    assert parse_params(["a=@-"]).value == {"a": "1\n"}


def test_a_byte_order_mark_before_params_is_ignored_and_an_empty_stdin_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b'\xef\xbb\xbf{"a": 1}')))
    assert parse_params([], "-").value == Raw(b'{"a":1}')
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"\n")))
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


@pytest.mark.parametrize("words", [["--json=-"], ["a=@-"]])
def test_stdin_is_read_once(words: list[str]) -> None:
    with pytest.raises(UsageError, match="stdin"):
        remote_call_of(parsed("m", *words, "--token-file=-"))


@pytest.mark.parametrize("text", ["10", '"x"', "null", "{", ""])
def test_params_as_json_must_be_an_object_or_an_array(text: str) -> None:
    with pytest.raises(UsageError):
        parse_params([], text)


@pytest.mark.parametrize(
    "words",
    [
        ["m", "a=1", "--json", "{}"],
        ["m", "--server", "x", "--app", "a:b"],
        ["m", "--server", "x", "--root", "."],
        ["m", "--server", "'"],
        ["m", "--server", ""],
        ["m", "--stream", "--retry", "1"],
    ],
)
def test_flags_that_contradict_each_other_are_wrong_usage(words: list[str]) -> None:
    with pytest.raises(UsageError):
        remote_call_of(parsed(*words))


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


WRONG_NUMBERS = {"--timeout": ["0", "-1", "nan", "inf", "soon"], "--retry": ["-1", "two", "1.5", "1e3", ""]}


@pytest.mark.parametrize("flag", [f"{flag}={text}" for flag, texts in WRONG_NUMBERS.items() for text in texts])
def test_a_number_that_is_none_is_wrong_usage(flag: str) -> None:
    with pytest.raises(UsageError):
        parsed("m", flag)


def test_every_row_of_the_table_of_errors_has_an_exit_status() -> None:
    for row in ERROR_TABLE:
        assert row.failure is DomainFailure or f"{EXIT_OF_HTTP[row.http_status]}" in verbs()["call"].statuses, (
            row.protocol_code
        )


def test_the_errors_of_the_client_itself_have_an_exit_status() -> None:
    errors = [ConnectionFailed(ConnectionLoss("gone")), InvalidReply("?"), StreamOverrun("?"), RequestTimeout("m", 1.0)]
    assert [exit_status(error) for error in errors] == [10, 10, 10, 7]
    assert exit_status(remote_error(encode_error(DomainFailure("OUT_OF_STOCK", "None left", http_status=404)))) == 6
    assert exit_status(remote_error(encode_error(Internal()))) == 9


def test_the_page_names_every_exit_status() -> None:
    page = (Path(__file__).parents[2] / "docs" / "call.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE)
    assert dict(rows) == verbs()["call"].all_statuses
