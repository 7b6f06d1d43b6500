"""The binding's page says what the daemon does: its transcripts are replayed, its tables compared with the code's."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from discreet.a2a import methods as a2a_methods
from discreet.a2a.types import MAX_PAGE_SIZE, Authentication, PushConfig, TaskQuery
from discreet.agents import event_buffer, live_task, methods, notifier
from discreet.agents.card_builder import stdio_interfaces
from discreet.agents.runner import CANCEL_SECONDS
from discreet.agents.stores.interface import PushTarget
from discreet.daemon.connection.writer import MAX_UNDELIVERED
from discreet.daemon.settings import Settings
from discreet.errors import AuthenticationRequired, failures
from discreet.errors.codes import ERROR_TABLE
from discreet.errors.failures import AgentFailure
from discreet.errors.wire import encode_error
from support.programs import environment
from support.waits import DEADLINE_SECONDS

PAGE = (Path(__file__).parents[2] / "docs" / "a2a-stdio-binding.md").read_text(encoding="utf-8")
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TRANSCRIPTS = [text for language, text in FENCED.findall(PAGE) if language == "text"]
PROGRAM = next(text for language, text in FENCED.findall(PAGE) if language == "python")
JSON = [text for language, text in FENCED.findall(PAGE) if language == "json"]

PLACEHOLDER = re.compile(r"<((?:task|context|message)(?:-\d+)?|time)>")
ID = r"[0-9a-f]{8}-[0-9a-f]{4}-[48][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def rows(section: str) -> list[list[str]]:
    """The cells of the tables of a section, without the backticks; the heads among them."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return [
        [cell.strip().replace("`", "") for cell in line.split("|")[1:-1]] for line in text.splitlines() if "|" in line
    ]


# -- transcripts ---------------------------------------------------------------------------------------------------


def lines(transcript: str) -> list[tuple[str, str]]:
    """Each line's sign and text, put together where it was broken."""
    found: list[tuple[str, str]] = []
    for line in transcript.splitlines():
        if line.startswith("    "):
            sign, text = found.pop()
            found.append((sign, text + line.strip()))
        else:
            found.append((line[0], line[2:]))
    return found


def pattern(shown: str, known: dict[str, str]) -> re.Pattern[str]:
    """What a line must be. A placeholder that was not met before stands for any id, and from then on for that one."""
    made, end, new = "", 0, set[str]()
    for found in PLACEHOLDER.finditer(shown):
        name = found[1]
        made += re.escape(shown[end : found.start()])
        if name == "time":
            made += TIME
        elif name in known:
            made += re.escape(known[name])
        else:
            group = name.replace("-", "_")
            made += f"(?P={group})" if name in new else f"(?P<{group}>{ID})"
            new.add(name)
        end = found.end()
    return re.compile(made + re.escape(shown[end:]))


def serve(command: str, folder: Path) -> subprocess.Popen[str]:
    program, *arguments = shlex.split(command)
    assert program == "discreet"
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "discreet", *arguments],
        cwd=folder,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def end(daemon: subprocess.Popen[str]) -> tuple[str, int]:
    """What it wrote that nobody expected, and its status."""
    rest, _ = daemon.communicate(timeout=DEADLINE_SECONDS)
    return rest, daemon.returncode


def replay(transcript: str, folder: Path) -> None:
    known: dict[str, str] = {}
    daemon: subprocess.Popen[str] | None = None
    try:
        for sign, text in lines(transcript):
            if sign == "$":
                assert daemon is None or end(daemon) == ("", 0)
                daemon = serve(text, folder)
                continue
            assert daemon is not None and daemon.stdin is not None and daemon.stdout is not None
            if sign == "→":
                daemon.stdin.write(PLACEHOLDER.sub(lambda found: known[found[1]], text) + "\n")
                daemon.stdin.flush()
            else:
                assert sign == "←"
                came = daemon.stdout.readline().removesuffix("\n")
                found = pattern(text, known).fullmatch(came)
                assert found is not None, f"\nshown {text}\ncame  {came}"
                known |= {name.replace("_", "-"): value for name, value in found.groupdict().items()}
        assert daemon is not None and end(daemon) == ("", 0)
    finally:
        if daemon is not None:
            daemon.kill()
            daemon.communicate()


@pytest.mark.parametrize("number", range(len(TRANSCRIPTS)))
def test_a_transcript_of_the_page_is_what_happens(number: int, tmp_path: Path) -> None:
    (tmp_path / "clerk.py").write_text(PROGRAM, encoding="utf-8")
    replay(TRANSCRIPTS[number], tmp_path)


@pytest.mark.parametrize(
    ("shown", "instead"),
    [("TASK_STATE_COMPLETED", "TASK_STATE_FAILED"), ("<context>", "<task>"), ("greeting", "<time>")],
)
def test_what_is_not_as_shown_is_noticed(shown: str, instead: str, tmp_path: Path) -> None:
    (tmp_path / "clerk.py").write_text(PROGRAM, encoding="utf-8")
    with pytest.raises(AssertionError, match="shown "):
        replay(TRANSCRIPTS[0].replace(shown, instead), tmp_path)


def test_the_transcripts_show_what_they_are_for() -> None:
    shown = "".join(TRANSCRIPTS)
    assert len(TRANSCRIPTS) == 8
    for what in (
        "GetTask",
        "SendStreamingMessage",
        "INPUT_REQUIRED",
        "CancelTask",
        "message/stream",
        "sqlite:",
        "--token",
    ):
        assert what in shown
    for sign, text in lines(shown):
        assert sign == "$" or json.loads(text)["jsonrpc"] == "2.0"


# -- tables --------------------------------------------------------------------------------------------------------


def test_the_methods_are_those_of_both_versions() -> None:
    shown = rows("4. Methods")[2:]
    assert tuple(row[1] for row in shown) == a2a_methods.V10_METHODS
    assert tuple(row[2] for row in shown if row[2]) == a2a_methods.V03_METHODS


def test_the_errors_are_those_of_the_table() -> None:
    shown = rows("6. Errors")
    agents = {row.failure: row for row in ERROR_TABLE if issubclass(row.failure, AgentFailure)}
    told = [
        [
            f"{kind.__name__}Error",
            f"−{-row.code}",
            row.message,
            row.protocol_code,
            str(row.http_status),
            row.grpc_status,
        ]
        for kind, row in agents.items()
    ]
    assert [row for row in shown if row[0].endswith("Error")] == told
    assert {kind.__name__ for kind in agents} == {
        name
        for name, it in vars(failures).items()
        if isinstance(it, type) and issubclass(it, AgentFailure) and it is not AgentFailure
    }


def test_the_general_errors_are_those_of_the_table() -> None:
    shown = {(row[0], row[1], row[4], row[5]) for row in rows("6. Errors") if len(row) == 6 and row[0].startswith("−")}
    known = {(f"−{-row.code}", row.message, str(row.http_status), row.grpc_status) for row in ERROR_TABLE}
    assert len(shown) == 10
    assert shown <= known


def test_the_bindings_own_errors_are_those_that_the_methods_declare() -> None:
    shown = [row[:3] for row in rows("6. Errors") if len(row) == 4 and row[0].isupper()]
    declared = [cls.definition for cls in methods.ERRORS]
    assert shown == [[it.code, str(it.http_status), "yes" if it.retryable else "no"] for it in declared]


def test_the_card_entry_is_the_daemons() -> None:
    shown: Any = json.loads(JSON[0])
    made = stdio_interfaces(Settings(apps=("clerk:agent",)))
    assert shown == [
        {"url": it.url, "protocolBinding": it.protocol_binding, "protocolVersion": it.protocol_version} for it in made
    ]
    assert "--framing=newline" in stdio_interfaces(Settings(framing="newline"))[0].url


def test_the_challenge_is_the_daemons() -> None:
    shown = next(text for text in JSON if "authSchemes" in text)
    assert json.loads(shown) == json.loads(encode_error(AuthenticationRequired(("bearer",), "discreet")))


def test_the_headers_of_push_notifications_are_those_that_are_sent() -> None:
    config = PushConfig("https://example.com/", "c", "t", "token", Authentication("Bearer", "secret"))
    for column, version in enumerate(("1.0", "0.3"), start=1):
        sent = dict(notifier.request_headers(PushTarget(config, version)))
        shown = {row[0]: row[column] for row in rows("11. Push notifications") if row[0] in {*sent, "A2A-Version"}}
        assert {name for name, cell in shown.items() if cell} == sent.keys() - {"User-Agent"}
        assert shown["Content-Type"] == sent["Content-Type"]
        assert shown["A2A-Version"] == sent.get("A2A-Version", "")


def test_the_numbers_are_those_of_the_code() -> None:
    text = " ".join(PAGE.split())
    assert f"At most {MAX_UNDELIVERED} events of a stream" in text
    assert (
        f"holds {event_buffer.MAX_EVENTS:,} events or {event_buffer.MAX_BYTES // 1024**2} MiB of one task in memory, {live_task.MAX_TOTAL_BYTES // 1024**2} MiB of all"
        in text
    )
    assert f"takes at most {CANCEL_SECONDS:.0f} s" in text
    assert f"gives {TaskQuery(scope='').page_size} tasks a page, or `pageSize` 1 to {MAX_PAGE_SIZE}" in text
    assert (
        f"tried {notifier.MAX_ATTEMPTS} times at most, with pauses of up to {notifier.INITIAL_BACKOFF_SECONDS} s, 1 s"
        in text
    )
    assert (
        f"up to {notifier.MAX_BACKOFF_SECONDS:.0f} s), after {', '.join(map(str, sorted(notifier.RETRYABLE_STATUSES)))}, 5xx"
        in text
    )
    assert f"An attempt takes {notifier.Timeouts().total:.0f} s at most" in text
    assert f"After {notifier.MAX_FAILURES} notifications in a row" in text
    settings = Settings()
    assert f"at most {settings.max_message_bytes // 1024**2} MiB (`--max-message-bytes`)" in text
    assert f"Within {settings.drain_timeout:.0f} s (`--drain-timeout`)" in text
