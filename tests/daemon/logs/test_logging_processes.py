"""Logs in a process of its own: its start, its imports, forks, its end, and its standard streams."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.waits import DEADLINE_SECONDS


def test_a_forked_child_writes_its_own_events_and_not_its_parent_s() -> None:
    script = """
        import os, warnings
        from discreet.daemon.logs import LogSettings, log, start_logging
        warnings.simplefilter("ignore")  # from Python 3.12 on, that a process with threads forks
        logs = start_logging(LogSettings(level="warn", format="json"), 2, {})
        log.error("first")
        child = os.fork()
        if child == 0:
            log.error("child")
            os._exit(logs.close(20))
        assert os.waitpid(child, 0)[1] == 0
        log.error("parent")
        assert logs.close(20) == 0
    """
    done = run(script)
    events = sorted(json.loads(line)["event"] for line in done.stderr.splitlines())
    assert events == ["child", "first", "parent"]


def test_the_main_thread_stays_the_main_thread_though_the_writer_imports() -> None:
    run("""
        import sys
        from discreet.daemon.logs import LogSettings, log, start_logging
        logs = start_logging(LogSettings(), 2, {})
        assert "threading" not in sys.modules
        log.error("first")
        logs.close(20)
        import threading
        assert "discreet.daemon.logs.render" in sys.modules
        assert threading.current_thread() is threading.main_thread()
    """)


def test_what_was_logged_is_written_when_the_process_ends_without_close(tmp_path: Path) -> None:
    path = tmp_path / "log"
    run(f"""
        import os
        from discreet.daemon.logs import LogSettings, log, start_logging
        start_logging(LogSettings(level="warn", format="json", file={str(path)!r}), 2, {{}})
        log.error("first")
        while not (os.path.exists({str(path)!r}) and os.path.getsize({str(path)!r})):
            os.sched_yield()  # the writer's start is no part of the time that it has at the end
        log.error("last")
    """)
    assert [json.loads(line)["event"] for line in path.read_text().splitlines()] == ["first", "last"]


def test_a_quiet_start_imports_nothing_heavy_and_nothing_reaches_stdout() -> None:
    done = run("""
        import sys, msgspec
        before = set(sys.modules)
        from discreet.daemon.logs import LogSettings, log, start_logging
        logs = start_logging(LogSettings(), 2, {})
        log.info("below.the.level", n=1)
        loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
        heavy = {"threading", "logging", "structlog", "datetime", "json", "asyncio", "inspect", "dataclasses", "queue"}
        assert not loaded & heavy, loaded & heavy
        log.error("above.it")
        logs.close(20)
        assert "structlog" not in sys.modules
        assert "logging" not in before
    """)
    assert done.stdout == ""
    assert re.fullmatch(r"timestamp=\S+ level=error event=above\.it\n", done.stderr)


def run(script: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in a process of its own, whose stderr is a pipe; it must succeed."""
    lines = script.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    done = subprocess.run(
        [sys.executable, "-P", "-c", "\n".join(line[indent:] for line in lines)],
        env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/stderr"])
def test_a_standard_stream_named_as_a_file_is_stderr(name: str) -> None:
    done = run(f"""
        import os
        from discreet.daemon.logs import LogSettings, log, start_logging
        logs = start_logging(LogSettings(format="json", file="{name}"), 2, {{}})
        log.error("tick")
        assert logs.sink_name == "stderr"
        logs.close(20)
    """)
    assert done.stdout == ""
    assert [json.loads(line)["event"] for line in done.stderr.splitlines()] == ["tick"]
