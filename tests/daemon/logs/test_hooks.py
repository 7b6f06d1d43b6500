"""The hooks, each in a process of its own: what would have gone to stderr or stdout is an event."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from support.waits import DEADLINE_SECONDS

SECRET = "correct-horse-battery-9"

PREAMBLE = """\
import atexit
import sys
from discreet.daemon.logs import *
logs = start_logging(LogSettings(level=LEVEL, format="json"), 2, {"DEPLOY_TOKEN": "correct-horse-battery-9"})
SECRET = "correct-horse-battery-9"
atexit.register(logs.close, 30)  # before the writer's own, which a busy machine may outlast
"""


def events(script: str, *, status: int = 0, level: str = "debug") -> list[dict[str, Any]]:
    """Runs the script after the preamble; every line on stderr must be an event, and stdout must stay empty.

    Returns the events without the start line.
    """
    lines = script.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    done = subprocess.run(
        [sys.executable, "-P", "-c", "\n".join([f"LEVEL = {level!r}", PREAMBLE, *(line[indent:] for line in lines)])],
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


def only(found: list[dict[str, Any]]) -> dict[str, Any]:
    [event] = found
    return event


def test_an_uncaught_exception_is_an_event_and_the_status_stays() -> None:
    event = only(events("install_hooks()\nraise ValueError(SECRET)", status=1))
    assert (event["event"], event["level"], event["thread"]) == ("python.uncaught", "error", "MainThread")
    assert "ValueError" in event["exc"]


def test_an_interruption_has_no_traceback() -> None:
    event = only(events("install_hooks()\nsys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)"))
    assert (event["event"], event["level"], "exc" in event) == ("python.interrupted", "info", False)


def test_an_exception_that_ends_a_thread_is_an_event() -> None:
    event = only(
        events("""
        import threading
        install_hooks()
        def work():
            raise LookupError(SECRET)
        for target in (work, sys.exit):
            thread = threading.Thread(target=target, name="worker")
            thread.start()
            thread.join()
    """)
    )
    assert (event["event"], event["thread"]) == ("python.uncaught", "worker")
    assert "LookupError" in event["exc"]


def test_an_exception_in_a_destructor_is_an_event() -> None:
    event = only(
        events("""
        install_hooks()
        class Resource:
            def __del__(self):
                raise OSError(SECRET)
            def __repr__(self):
                return SECRET
        Resource()
    """)
    )
    assert (event["event"], event["level"]) == ("python.unraisable", "error")
    assert "OSError" in event["exc"]


def test_a_warning_is_an_event() -> None:
    event = only(
        events("""
        import warnings
        install_hooks()
        warnings.warn(f"do not use {SECRET}", UserWarning)
    """)
    )
    assert (event["event"], event["level"], event["category"]) == ("python.warning", "warn", "UserWarning")
    assert event["message"].startswith("do not use ")


def test_a_warning_for_somebody_s_file_goes_there() -> None:
    found = events("""
        import io, warnings
        install_hooks()
        file = io.StringIO()
        warnings.showwarning("text", UserWarning, "file.py", 1, file)
        assert "UserWarning: text" in file.getvalue()
    """)
    assert found == []


def test_a_warning_whose_text_fails_is_still_an_event() -> None:
    event = only(
        events("""
        import warnings
        install_hooks()
        class Odd(UserWarning):
            def __str__(self):
                raise ZeroDivisionError
        warnings.showwarning(Odd(), Odd, "file.py", 1)
    """)
    )
    assert (event["event"], event["category"], event["message"]) == ("python.warning", "Odd", "")


def test_records_of_the_standard_logging_are_events() -> None:
    found = events("""
        import logging
        install_hooks()
        logging.getLogger("lib.db").warning("connect %s", SECRET)
        try:
            raise KeyError(SECRET)
        except KeyError:
            logging.getLogger("lib").exception("failed")
        logging.critical("%s", 1)
        logging.debug("low")
    """)
    assert [(event["event"], event["level"], event["logger"]) for event in found] == [
        ("python.log", "warn", "lib.db"),
        ("python.log", "error", "lib"),
        ("python.log", "error", "root"),
        ("python.log", "debug", "root"),
    ]
    assert found[0]["message"].startswith("connect ")
    assert "KeyError" in found[1]["exc"]
    assert "exc" not in found[2]


def test_the_root_logger_follows_our_level() -> None:
    found = events("""
        import logging
        capture_logging()
        log.set_level("error")
        assert not logging.getLogger("lib").isEnabledFor(logging.WARNING)
        logging.warning("below")
        log.set_level("info")
        logging.info("above")
    """)
    assert [event["message"] for event in found] == ["above"]


def test_a_record_that_can_t_be_formatted_raises_and_prints_nothing() -> None:
    found = events("""
        import logging
        capture_logging()
        class Odd:
            def __str__(self):
                raise ZeroDivisionError
        logging.warning("%d %d", "one")
        logging.warning("%s", Odd())
    """)
    assert [event["message"] for event in found] == ["<unformattable: TypeError>", "<unformattable: ZeroDivisionError>"]


def test_a_faulty_handler_of_somebody_else_prints_nothing() -> None:
    found = events("""
        import io, logging
        capture_logging()
        closed = io.StringIO()
        closed.close()
        logging.getLogger("lib").addHandler(logging.StreamHandler(closed))
        logging.getLogger("lib").warning("text")
    """)
    assert [event["message"] for event in found] == ["text"]


def test_handlers_on_the_standard_streams_leave_the_root_logger_and_others_stay() -> None:
    found = events("""
        import io, logging
        memory = io.StringIO()
        streams = (sys.stderr, sys.stdout, memory)
        logging.basicConfig(format="%(message)s", handlers=[logging.StreamHandler(stream) for stream in streams])
        capture_logging()
        logging.warning("text")
        assert memory.getvalue() == "text\\n"
    """)
    assert [event["message"] for event in found] == ["text"]


def test_a_logger_without_any_handler_reaches_us_too() -> None:
    found = events("""
        import logging
        capture_logging()
        lonely = logging.getLogger("lonely")
        lonely.propagate = False
        lonely.warning("text")
    """)
    assert [event["logger"] for event in found] == ["lonely"]


def test_users_structlog_lands_here_and_not_on_stdout() -> None:
    found = events("""
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
    """)
    assert [(event["event"], event["level"], event["message"]) for event in found] == [
        ("python.log", "info", "signed in"),
        ("python.log", "warn", "slow"),
        *[("python.log", "error", "failed")] * 3,
    ]
    assert "abcdefgh12345678" not in json.dumps(found[0])
    assert (found[0]["user"], found[1]["level_"]) == ("u1", "mine")
    assert all("KeyError" in event["exc"] for event in found[2:])


def test_a_structlog_that_the_user_has_configured_is_left_alone() -> None:
    found = events("""
        import structlog
        seen = []
        def keep(logger, method, entry):
            seen.append(entry["event"])
            raise structlog.DropEvent
        structlog.configure(processors=[keep])
        capture_structlog()
        structlog.get_logger().info("mine")
        assert seen == ["mine"]
    """)
    assert found == []


def test_the_loop_s_unhandled_exceptions_are_events() -> None:
    event = only(
        events("""
        import asyncio
        async def main():
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(loop_exception_handler)
            def fail():
                raise LookupError(SECRET)
            loop.call_soon(fail)
            await asyncio.sleep(0)
        asyncio.run(main())
    """)
    )
    assert (event["event"], event["level"]) == ("loop.exception", "error")
    assert "LookupError" in event["exc"]


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


def test_everything_is_put_back_as_it_was() -> None:
    found = events("""
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
    """)
    assert found == []


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_stray_text_is_an_event(stream: str) -> None:
    event = only(events(f"log_stray_output({stream!r}, 'hello\\n' + SECRET)"))
    assert (event["event"], event["level"]) == (f"{stream}.stray", "warn")
    assert event["text"].startswith("hello\n")
