"""The hooks, each in a process of its own: what would have gone to stderr or stdout is an event."""

import json
import os
import subprocess
import sys
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


def events(script: str, *, status: int = 0, level: str = "debug") -> list[dict[str, Any]]:
    """Runs the script after the preamble; every line on stderr must be an event, and stdout must stay empty.

    Returns the events without the start line.
    """
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"LEVEL = {level!r}\n{PREAMBLE}{dedent(script)}"],
        env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
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
