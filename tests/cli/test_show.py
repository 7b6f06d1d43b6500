"""`discreet show`: a line per message, answers with the method and the time of their requests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from discreet.cli.main import main
from support.programs import DISCREET, on_terminal

SESSION = r"""
{"type":"start","ms":0.0,"version":1,"framing":"newline","command":["discreet","serve"]}
{"type":"message","ms":1.0,"from":"client","message":{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"x":1}}}
{"type":"message","ms":1.5,"from":"client","message":{"jsonrpc":"2.0","id":"1","method":"c"}}
{"type":"message","ms":2.0,"from":"server","message":{"jsonrpc":"2.0","id":1,"method":"ask","params":[1]}}
{"type":"message","ms":2.5,"from":"client","message":{"jsonrpc":"2.0","id":1,"result":true}}
{"type":"message","ms":3.0,"from":"server","message":{"jsonrpc":"2.0","method":"stream/event","params":{"id":1,"seq":1,"value":5}}}
{"type":"message","ms":4.5,"from":"server","message":{"jsonrpc":"2.0","id":1,"result":{"y":"\u001b[31m"}}}
{"type":"message","ms":5.0,"from":"server","message":{"jsonrpc":"2.0","id":"7","error":{"code":-32600,"message":"no"}}}
{"type":"message","ms":5.5,"from":"server","message":[1]}
{"type":"omitted","ms":6.0,"from":"client","reason":"invalid-json","bytes":17}
{"type":"stderr","ms":7.0,"text":"a\u001b[2Jb"}
{"type":"closed","ms":8.0,"from":"client"}
{"type":"end","ms":9.0,"status":-15}
""".lstrip()

SHOWN = r"""
      0.0 ms  discreet serve  (newline)
      1.0 ms  → 1 a/b {"x":1}
      1.5 ms  → "1" c
      2.0 ms  ← 1 ask [1]
      2.5 ms  → 1 ask 0.5 ms true
      3.0 ms  ← 1 event 5
      4.5 ms  ← 1 a/b 3.5 ms {"y":"\u001b[31m"}
      5.0 ms  ← "7" error {"code":-32600,"message":"no"}
      5.5 ms  ← [1]
      6.0 ms  → 17 bytes left out: invalid-json
      7.0 ms  stderr: a\x1b[2Jb
      8.0 ms  → end of the stream
      9.0 ms  the server was ended by signal 15
8 messages, 1 error, 1 request without an answer, slowest: a/b, 3.5 ms
""".lstrip("\n")


def shown(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    path = tmp_path / "session.jsonl"
    path.write_text(text, "utf-8")
    assert main(["show", str(path), *flags]) == 0
    return capsys.readouterr().out


def test_each_entry_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(tmp_path, SESSION, capsys) == SHOWN


def test_a_recording_that_was_cut_off_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(tmp_path, SESSION.splitlines(keepends=True)[0], capsys).endswith(
        "0 messages, 0 errors, 0 requests without an answer, the recording was cut off\n"
    )


def test_long_values_are_cut_unless_all_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = SESSION.replace('{"x":1}', f'{{"x":"{"y" * 5000}"}}')
    assert max(map(len, shown(tmp_path, text, capsys).splitlines())) < 200
    assert "y" * 5000 in shown(tmp_path, text, capsys, "--full")


def test_names_and_ids_are_cut_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = SESSION.replace('"id":1,"method":"a/b"', f'"id":"{"i" * 5000}","method":"{"m" * 5000}"')
    assert max(map(len, shown(tmp_path, text, capsys, "--full").splitlines())) < 500


def test_a_fault_in_the_middle_is_one_line_after_what_is_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x"
    path.write_text(SESSION.replace('"type":"stderr"', '"type":"odd"'), "utf-8")
    assert main(["show", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == "".join(SHOWN.splitlines(keepends=True)[:10])
    assert printed.err.count("\n") == 1 and ":11:" in printed.err
    assert main(["show", "--html", str(path)]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX terminal")
def test_a_page_is_not_printed_to_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(SESSION, "utf-8")
    done, _ = on_terminal([*DISCREET, "show", str(tmp_path / "x"), "--html"], "stdout")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
