"""What the doctor finds in the environment, and in daemons that are well or ill."""

import json
import os
import sys
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet.cli.conversation import DaemonLog, Finding, converse
from discreet.cli.main import main
from discreet.cli.verbs import doctor
from discreet.cli.verbs.doctor import CHECKS, EXTRAS, check_extras, check_limits, check_log, check_settings
from discreet.daemon.settings import Resolved, Settings, resolve_settings


def found(check: Any, chosen: Settings | None = None) -> list[Finding]:
    return list(check(Resolved(chosen or Settings(root="/"), {}), {}))


def statuses(findings: list[Finding]) -> set[tuple[str, str]]:
    return {(finding.check, finding.status) for finding in findings}


# The environment


def test_of_every_extra_that_is_missing_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    declared = tomllib.loads(text)["project"]["optional-dependencies"]
    assert EXTRAS.keys() - {"trio"} == declared.keys() - {"docs", "test", "dev"}
    for extra, (module, _, _) in EXTRAS.items():
        assert extra == "trio" or declared[extra][0].lower().replace("-", "_").removeprefix("py").startswith(module)
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    told = found(check_extras)
    assert {finding.status for finding in told} == {"ok"}
    for (extra, (_, _, install)), finding in zip(EXTRAS.items(), told, strict=True):
        assert finding.message.startswith(f"{extra}: ")
        assert finding.message.endswith(f"pip install {install}")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_no_check_fails_where_these_tests_run(check: Any) -> None:
    assert "fail" not in {finding.status for finding in found(check)}


def test_each_setting_is_shown_with_its_source() -> None:
    environ = {"DISCREET_MAX_CONCURRENCY": "3", "DISCREET_SCOPE": "a b", "DISCREET_ELSEWHERE_BOT": "x"}
    findings = list(check_settings(resolve_settings({}, environ, "/"), environ))
    said = [finding.message for finding in findings if finding.status == "ok"]
    assert said == ["scope = a, b (from DISCREET_SCOPE)", "max-concurrency = 3 (from DISCREET_MAX_CONCURRENCY)"]
    assert [f.status for f in findings if "DISCREET_ELSEWHERE_BOT" in f.message] == ["warn"]


@pytest.mark.parametrize(
    "chosen", [Settings(request_timeout=None), Settings(drain_timeout=60.0)], ids=["request-timeout", "drain-timeout"]
)
def test_settings_that_may_surprise_are_named(chosen: Settings) -> None:
    assert ("limits", "warn") not in statuses([f for f in found(check_limits) if "timeout" in f.message])
    assert ("limits", "warn") in statuses([f for f in found(check_limits, chosen) if "timeout" in f.message])


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
def test_more_requests_than_open_files_are_named() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        few, many = (
            [finding.status for finding in found(check_limits, Settings(max_threads=n)) if "files" in finding.message]
            for n in (64, 600)
        )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (few, many) == (["ok"], ["warn"])


def test_a_log_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    for path, status in (
        (None, "ok"),
        ("", "ok"),
        (str(tmp_path / "log"), "ok"),
        (str(tmp_path / "new"), "ok"),
        (str(tmp_path), "warn"),
        (str(tmp_path / "none" / "log"), "warn"),
    ):
        assert [finding.status for finding in found(check_log, Settings(log_file=path))] == [status]


# Daemons that are well or ill

WELL = """
import json, os, signal, subprocess, sys, time
def out(body): os.write(1, b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))
def answer(first=b'{"id":%d,"jsonrpc":"2.0","result":{}}'):
    for text in (first, b'{"id":%d,"jsonrpc":"2.0","result":[]}'):
        message = json.loads(sys.stdin.buffer.read(int(sys.stdin.buffer.readline().split()[1]) + 2))
        out(text % message["id"])
def to_the_end():
    while os.read(0, 65536): pass
"""


def ill(code: str, **seconds: float) -> list[Finding]:
    """What is found of a program that plays a daemon."""
    command = [sys.executable, "-I", "-c", WELL + code]
    return anyio.run(partial(converse, command, "content-length", "plain", drain_seconds=3600.0, **seconds))


def test_a_daemon_that_is_well_passes() -> None:
    assert [(each.check, each.status) for each in ill("answer(); to_the_end()")] == [
        ("reply", "ok"),
        ("plain", "ok"),
        ("plain", "warn"),  # it has no operations
        ("end", "ok"),
    ]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("to_the_end()", ("reply", "fail")),
        ("os.write(2, b'cannot start'); sys.exit(2)", ("end", "fail")),
        ("os.write(1, b'banner'); to_the_end()", ("reply", "fail")),
        ("answer(); to_the_end(); sys.exit(1)", ("end", "fail")),
        ("out(b'{}'); to_the_end()", ("reply", "fail")),
        ('os.write(2, b\'{"event":"stdout.stray","level":"warn"}\\n\'); answer(); to_the_end()', ("log", "warn")),
        ('os.write(2, b\'{"event":"lifespan.not_left","level":"warn"}\\n\'); answer(); to_the_end()', ("log", "warn")),
    ],
)
def test_what_is_wrong_with_a_daemon_is_found(code: str, found: tuple[str, str]) -> None:
    assert found in statuses(ill(code, answer_seconds=0.5))


def test_what_the_apps_wrote_is_shown() -> None:
    log = DaemonLog()
    log.add('{"event":"stdout.stray","level":"warn","text":"hello\\nthere"}')
    (finding,) = log.findings()
    assert finding.message.endswith(": hello\\nthere")


def test_an_end_that_takes_longer_than_the_drain_window_is_named() -> None:
    command = [sys.executable, "-I", "-c", f"{WELL}answer(); to_the_end(); time.sleep(0.7)"]
    found = anyio.run(partial(converse, command, "content-length", "plain", drain_seconds=0.1))
    assert ("end", "warn") in statuses(found)


def test_why_a_daemon_did_not_start_is_told() -> None:
    assert any(
        "cannot start" in finding.message for finding in ill("os.write(2, b'first\\ncannot start\\n'); sys.exit(2)")
    )


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(sys.platform == "win32", reason="signals are the subject")
def test_a_daemon_that_does_not_end_is_killed_and_said_so(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    found = ill(
        f"signal.signal(signal.SIGTERM, signal.SIG_IGN); open({str(note)!r}, 'w').write(str(os.getpid())); answer();"
        " signal.pause()",
        end_seconds=0.1,
    )
    assert not is_there(int(note.read_text()))
    assert ("end", "fail") in statuses(found)


# The real thing


def report(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict[str, Any]]:
    status = main(["doctor", "--json", *argv])
    return status, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("framing", ["content-length", "newline", "auto"])
def test_our_own_daemon_passes(framing: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, found = report(capsys, "--framing", framing)
    failed = [finding for finding in found["findings"] if finding["status"] == "fail"]
    assert (status, found["ok"], failed) == (0, True, [])
    assert {"reply", "plain", "end"} <= {finding["check"] for finding in found["findings"]}


APP = """
from discreet import Service
import os
print("a banner")
os.system("echo from a child")
svc = Service("svc")
"""


def test_text_that_an_app_prints_at_import_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loud_app.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    status, found = report(capsys, "./loud_app.py:svc")
    assert status == 0
    told = [finding["message"] for finding in found["findings"] if finding["check"] == "log"]
    assert all(message.startswith("stdout.stray: ") for message in told[1:])
    assert "a banner" in "".join(told) and "from a child" in "".join(told)


def test_an_app_that_cannot_be_imported_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = report(capsys, "no_such_module_anywhere:svc")
    failed = [finding for finding in found["findings"] if finding["status"] == "fail"]
    assert status == 1
    assert {finding["check"] for finding in failed} == {"reply", "end"}
    assert any("no_such_module_anywhere" in finding["message"] for finding in failed)


SECRET = "Willow-Hollow-86"


@pytest.mark.parametrize(
    "flag",
    [
        f"--import=x=https://ann:{SECRET}@api.example.org/openapi.json?token={SECRET}",
        f"--http-url=https://ann:{SECRET}@shop.example.org",
        f"--http-origin=https://ann:{SECRET}@shop.example.org",
        f"--store=postgresql://svc:p@ss/{SECRET}@db.example.org/x?password={SECRET}",
        f"--store=redis://:{SECRET}@cache:6379/0",
        f"--jwt-jwks=https://id.example.org/keys?token={SECRET}",
        f"--log-file=/tmp/x?password={SECRET}",
        f"--log-level={SECRET}",
        f"--http=https://ann:{SECRET}@localhost:1",
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_no_secret_of_a_setting_is_in_a_report(flag: str, form: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", flag, *form])
    shown = capsys.readouterr()
    assert SECRET not in shown.out + shown.err


def test_settings_that_cannot_be_read_are_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    status, found = report(capsys, "--framing=bogus")
    assert status == 1
    assert [(finding["check"], finding["status"]) for finding in found["findings"]] == [("settings", "fail")]


def test_the_report_for_people_has_a_line_per_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith(("ok ", "warn ", "fail ")) for line in lines[:-2])
    assert lines[-1].startswith("0 failed")
