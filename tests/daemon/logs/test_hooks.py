"""Logs in a process of its own: hooks for what would have gone to stderr or stdout, its start, its imports, forks and its end."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from support.waits import DEADLINE_SECONDS

SECRET = "correct-horse-battery-9"

PREAMBLE = """\
import atexit, sys
from discreet.daemon.logs import *
logs = start_logging(LogSettings(level=LEVEL, format="json"), 2, {"DEPLOY_TOKEN": "correct-horse-battery-9"})
SECRET = "correct-horse-battery-9"
atexit.register(logs.close, 30)  # before the writer's own, which a busy machine may outlast
"""


class Has(str):
    """Equal to each text that it is a part of."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and str(self) in other

    __hash__ = str.__hash__


def run(script: str, *, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, whose stderr is a pipe. Nothing of it may reach stdout."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    return done


def events(script: str, *, status: int = 0, level: str = "debug") -> list[dict[str, Any]]:
    """Run the script after the preamble; every line on stderr must be an event. Without the start line."""
    done = run(f"LEVEL = {level!r}\n{PREAMBLE}{dedent(script)}", status=status)
    assert SECRET not in done.stderr
    found = [json.loads(line) for line in done.stderr.splitlines()]
    return [event for event in found if event["event"] != "daemon.started"]


CASES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "an interruption has no traceback": (
        "install_hooks()\nsys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)",
        [{"event": "python.interrupted", "level": "info", "exc": None}],
    ),
    "an exception ends a thread, and an exit is none": (
        """
        import threading
        install_hooks()
        def work():
            raise LookupError(SECRET)
        for target in (work, sys.exit):
            thread = threading.Thread(target=target, name="worker")
            thread.start()
            thread.join()
        """,
        [{"event": "python.uncaught", "thread": "worker", "exc": Has("LookupError")}],
    ),
    "an exception in a destructor": (
        """
        install_hooks()
        class Resource:
            def __del__(self):
                raise OSError(SECRET)
            def __repr__(self):
                return SECRET
        Resource()
        """,
        [{"event": "python.unraisable", "level": "error", "exc": Has("OSError")}],
    ),
    "a warning, one for somebody's file, which goes there, and one whose text fails": (
        """
        import io, warnings
        install_hooks()
        warnings.warn(f"do not use {SECRET}", UserWarning)
        file = io.StringIO()
        warnings.showwarning("text", UserWarning, "file.py", 1, file)
        assert "UserWarning: text" in file.getvalue()
        class Odd(UserWarning):
            def __str__(self):
                raise ZeroDivisionError
        warnings.showwarning(Odd(), Odd, "file.py", 1)
        """,
        [
            {"event": "python.warning", "level": "warn", "category": "UserWarning", "message": Has("do not use ")},
            {"event": "python.warning", "category": "Odd", "message": ""},
        ],
    ),
    "records of the standard logging": (
        """
        import logging
        install_hooks()
        logging.getLogger("lib.db").warning("connect %s", SECRET)
        try:
            raise KeyError(SECRET)
        except KeyError:
            logging.getLogger("lib").exception("failed")
        logging.critical("%s", 1)
        logging.debug("low")
        """,
        [
            {"event": "python.log", "level": "warn", "logger": "lib.db", "message": Has("connect ")},
            {"event": "python.log", "level": "error", "logger": "lib", "exc": Has("KeyError")},
            {"event": "python.log", "level": "error", "logger": "root", "exc": None},
            {"event": "python.log", "level": "debug", "logger": "root"},
        ],
    ),
    "the root logger follows our level": (
        """
        import logging
        capture_logging()
        log.set_level("error")
        assert not logging.getLogger("lib").isEnabledFor(logging.WARNING)
        logging.warning("below")
        log.set_level("info")
        logging.info("above")
        """,
        [{"message": "above"}],
    ),
    "a record that can't be formatted raises and prints nothing": (
        """
        import logging
        capture_logging()
        class Odd:
            def __str__(self):
                raise ZeroDivisionError
        logging.warning("%d %d", "one")
        logging.warning("%s", Odd())
        """,
        [{"message": "<unformattable: TypeError>"}, {"message": "<unformattable: ZeroDivisionError>"}],
    ),
    "a faulty handler of somebody else, and a logger without any": (
        """
        import io, logging
        capture_logging()
        closed = io.StringIO()
        closed.close()
        logging.getLogger("lib").addHandler(logging.StreamHandler(closed))
        logging.getLogger("lib").warning("text")
        lonely = logging.getLogger("lonely")
        lonely.propagate = False
        lonely.warning("text")
        """,
        [{"message": "text", "logger": "lib"}, {"message": "text", "logger": "lonely"}],
    ),
    "handlers on the standard streams leave the root logger, and others stay": (
        """
        import io, logging
        memory = io.StringIO()
        streams = (sys.stderr, sys.stdout, memory)
        logging.basicConfig(format="%(message)s", handlers=[logging.StreamHandler(stream) for stream in streams])
        capture_logging()
        logging.warning("text")
        assert memory.getvalue() == "text\\n"
        """,
        [{"message": "text"}],
    ),
    "users' structlog lands here": (
        """
        import structlog
        install_hooks()
        logger = structlog.get_logger().bind(user="u1")
        logger.info("signed in", password="abcdefgh12345678", nested={"secret": SECRET})
        logger.warning("slow", level="mine")
        try:
            raise KeyError(SECRET)
        except KeyError as exc:
            logger.exception("failed")
            logger.error("failed", exc_info=exc)
            logger.error("failed", exc_info=sys.exc_info())
        log.set_level("error")
        logger.info("below")
        """,
        [
            {"event": "python.log", "level": "info", "message": "signed in", "password": "<redacted>", "user": "u1"},
            {"event": "python.log", "level": "warn", "message": "slow", "level_": "mine"},
            *[{"event": "python.log", "level": "error", "message": "failed", "exc": Has("KeyError")}] * 3,
        ],
    ),
    "a structlog that the user has configured is left alone": (
        """
        import structlog
        seen = []
        def keep(logger, method, entry):
            seen.append(entry["event"])
            raise structlog.DropEvent
        structlog.configure(processors=[keep])
        capture_structlog()
        structlog.get_logger().info("mine")
        assert seen == ["mine"]
        """,
        [],
    ),
    "the loop's unhandled exceptions": (
        """
        import asyncio
        async def main():
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(loop_exception_handler)
            def fail():
                raise LookupError(SECRET)
            loop.call_soon(fail)
            await asyncio.sleep(0)
        asyncio.run(main())
        """,
        [{"event": "loop.exception", "level": "error", "exc": Has("LookupError")}],
    ),
    "everything is put back as it was": (
        """
        import logging, structlog, threading, warnings
        def hooks():
            root = logging.getLogger()
            return [
                sys.excepthook, sys.unraisablehook, threading.excepthook, warnings.showwarning, logging.lastResort,
                logging.raiseExceptions, list(root.handlers), root.level, structlog.is_configured(),
            ]
        before = hooks()
        install_hooks()
        assert all(was != now for was, now in zip(before, hooks(), strict=True))
        uninstall_hooks()
        assert before == hooks()
        uninstall_hooks()
        """,
        [],
    ),
    "stray text": (
        "for stream in ('stdout', 'stderr'): log_stray_output(stream, 'hello\\n' + SECRET)",
        [{"event": f"{stream}.stray", "level": "warn", "text": Has("hello\n")} for stream in ("stdout", "stderr")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_would_have_been_printed_is_an_event(case: str) -> None:
    script, expected = CASES[case]
    found = events(script)
    assert len(found) == len(expected)
    for event, fields in zip(found, expected, strict=True):
        assert {name: event.get(name) for name in fields} == fields


def test_an_uncaught_exception_is_an_event_and_the_status_stays() -> None:
    [event] = events("install_hooks()\nraise ValueError(SECRET)", status=1)
    assert (event["event"], event["level"], event["thread"]) == ("python.uncaught", "error", "MainThread")
    assert "ValueError" in event["exc"]


def test_hooks_load_no_module_and_a_second_call_hooks_the_modules_loaded_since() -> None:
    found = events(
        """
        install_hooks()
        assert not {"logging", "threading", "structlog"} & set(sys.modules)
        import logging, threading
        install_hooks()
        install_hooks()
        assert len(logging.getLogger().handlers) == 1
        assert threading.excepthook is not threading.__excepthook__
        logging.error("text")
        """,
        level="error",
    )
    assert [event["message"] for event in found] == ["text"]


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
    done = run(dedent(script))
    events = sorted(json.loads(line)["event"] for line in done.stderr.splitlines())
    assert events == ["child", "first", "parent"]


def test_the_main_thread_stays_the_main_thread_though_the_writer_imports() -> None:
    run(
        dedent("""
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
    )


def test_what_was_logged_is_written_when_the_process_ends_without_close(tmp_path: Path) -> None:
    path = tmp_path / "log"
    run(
        dedent(f"""
        import os
        from discreet.daemon.logs import LogSettings, log, start_logging
        start_logging(LogSettings(level="warn", format="json", file={str(path)!r}), 2, {{}})
        log.error("first")
        while not (os.path.exists({str(path)!r}) and os.path.getsize({str(path)!r})):
            os.sched_yield()  # the writer's start is no part of the time that it has at the end
        log.error("last")
    """)
    )
    assert [json.loads(line)["event"] for line in path.read_text().splitlines()] == ["first", "last"]


def test_a_quiet_start_imports_nothing_heavy_and_nothing_reaches_stdout() -> None:
    done = run(
        dedent("""
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
    )
    assert re.fullmatch(r"timestamp=\S+ level=error event=above\.it\n", done.stderr)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/stderr"])
def test_a_standard_stream_named_as_a_file_is_stderr(name: str) -> None:
    done = run(
        dedent(f"""
        import os
        from discreet.daemon.logs import LogSettings, log, start_logging
        logs = start_logging(LogSettings(format="json", file="{name}"), 2, {{}})
        log.error("tick")
        assert logs.sink_name == "stderr"
        logs.close(20)
    """)
    )
    assert [json.loads(line)["event"] for line in done.stderr.splitlines()] == ["tick"]
