"""`discreet demo`: starts daemons, calls them, and shows what goes over the wire and why it matters.

Runs in a temporary folder with default settings, whatever this user's settings are. Each step checks what it shows: the
exit status is 0 only if all of them succeeded.
"""

import argparse
import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import anyio

from ...client import ClientError, attach, spawn
from ...daemon.lifecycle import EXIT_FAILED, EXIT_OK
from ...errors.printable import printable
from ...module_path import for_children
from ..demo.capture import CapturingTransport
from ..demo.steps import (
    APP_STEPS,
    DEMO_APP,
    DEMO_FILES,
    FILE_SERVICE_STEPS,
    DemoDaemon,
    DemoStep,
    ServerOutput,
    StepFailed,
)
from ..output import styled, write_stdout
from ..server_command import SERVE
from ..signals import Interrupted, run_until_signal

STEP_SECONDS: Final = 10.0
"""The deadline of a step; each takes milliseconds."""

_MAX_SHOWN_CHARS: Final = 160
"""Characters of a message that are shown."""

_BOLD, _DIM, _RED, _GREEN, _YELLOW, _PURPLE, _CYAN = "1", "2", "31", "32", "33", "35", "36"  # ECMA-48, 8.3.117


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(args: argparse.Namespace) -> int:
    """Run every step. Returns 0 if all succeeded, else 1."""
    with tempfile.TemporaryDirectory(prefix="discreet-demo-") as folder:
        for name, text in DEMO_FILES.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        try:
            failed = run_until_signal(_run_all, folder)
        except Interrupted as exc:
            return exc.status
    write_stdout("")
    write_stdout(styled(_RED, f"{failed} failed.") if failed else styled(_GREEN, "Every step succeeded."))
    return EXIT_FAILED if failed else EXIT_OK


async def _run_all(folder: str) -> int:
    write_stdout(styled(_BOLD, "$ discreet serve"))
    failed = await _run_steps(folder, (), FILE_SERVICE_STEPS)
    write_stdout("")
    write_stdout(styled(_BOLD, f"$ discreet serve {DEMO_APP}"))
    write_stdout(styled(_DIM, DEMO_FILES["calculator.py"].rstrip()))
    return failed + await _run_steps(folder, (DEMO_APP,), APP_STEPS)


async def _run_steps(folder: str, apps: tuple[str, ...], steps: tuple[DemoStep, ...]) -> int:
    """Start a daemon and run the steps with it. Returns how many failed."""
    failed = 0
    try:
        async with _daemon(folder, apps) as daemon:
            for step in steps:
                failed += not await run_step(step, daemon)
    except ClientError as error:
        _write_line(_RED, "!", str(error))
        failed += 1
    return failed


async def run_step(step: DemoStep, daemon: DemoDaemon, *, seconds: float = STEP_SECONDS) -> bool:
    """Run one step and print its messages. Returns whether it succeeded."""
    write_stdout("")
    write_stdout(styled(_BOLD, step.title))
    problem = None
    try:
        with anyio.fail_after(seconds):
            await step.act(daemon)
    except (ClientError, StepFailed) as error:
        problem = f"{type(error).__name__}: {error}"
    except TimeoutError:
        problem = f"nothing happened within {seconds:g} s"
    captured, log = daemon.transport.take(), daemon.output.log
    for colour, mark, messages in (
        (_CYAN, "→", captured.sent),
        (_PURPLE, "←", captured.received),
        (_YELLOW, "log", log),
    ):
        for message in messages:
            _write_line(colour, mark, message)
    log.clear()
    if problem is None:
        write_stdout(f"  {styled(_DIM, step.why)}")
    else:
        _write_line(_RED, "!", problem)
    return problem is None


@asynccontextmanager
async def _daemon(folder: str, apps: tuple[str, ...]) -> AsyncGenerator[DemoDaemon]:
    output = ServerOutput()
    async with spawn([*SERVE, *apps], cwd=folder, env=_environment(), stderr=output.add_log_line) as process:
        transport = CapturingTransport(process, output.notify)
        async with attach(transport, timeout=STEP_SECONDS, explain=process.explain) as peer:
            peer.on_unidentified_error(output.add_error)
            yield DemoDaemon(process, peer, transport, output)


def _environment() -> dict[str, str]:
    """This process's environment, without settings of the daemon, and with the modules that this process has."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DISCREET_")}
    return {**environ, "PYTHONPATH": for_children()}


def _write_line(colour: str, mark: str, message: str) -> None:
    text = printable(message)
    write_stdout(f"  {styled(colour, mark)} {text if len(text) <= _MAX_SHOWN_CHARS else text[:_MAX_SHOWN_CHARS] + '…'}")
