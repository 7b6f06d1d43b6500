"""`discreet demo`: starts daemons, talks to them, and shows what goes over the wire and why it matters.

Everything happens in a temporary folder, with the defaults, whatever the settings of this user are. Each step checks
what it shows: the exit status is 0 only if every one of them behaved.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import anyio

from ...client import ClientError, attach, spawn
from ...daemon.lifecycle import EXIT_FAILED, EXIT_OK
from ...daemon.printable import printable
from ..demo_steps import DESK, FILES, FOLDER, Heard, Scene, Step, Unexpected
from ..interrupts import Interrupted, run_until_signal
from ..output import out
from ..wiretap import Wiretap

STEP_SECONDS: Final = 10.0
"""How long a step may take; each takes milliseconds."""

_SHOWN: Final = 160
"""Characters of a message that are shown."""

_BOLD, _DIM, _RED, _GREEN, _YELLOW, _PURPLE, _CYAN = "1", "2", "31", "32", "33", "35", "36"  # ECMA-48, 8.3.117


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(args: argparse.Namespace) -> int:
    """Show everything; 0 if every step behaved, 1 if one did not."""
    with tempfile.TemporaryDirectory(prefix="discreet-demo-") as folder:
        for name, text in FOLDER.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        try:
            failed = run_until_signal(_show_all, folder)
        except Interrupted as exc:
            return exc.status
    out("")
    out(_styled(_RED, f"{failed} failed.") if failed else _styled(_GREEN, "Every step behaved."))
    return EXIT_FAILED if failed else EXIT_OK


async def _show_all(folder: str) -> int:
    out(_styled(_BOLD, "$ discreet serve"))
    failed = await _show(folder, (), FILES)
    out("")
    out(_styled(_BOLD, "$ discreet serve desk:desk"))
    out(_styled(_DIM, FOLDER["desk.py"].rstrip()))
    return failed + await _show(folder, ("desk:desk",), DESK)


async def _show(folder: str, apps: tuple[str, ...], steps: tuple[Step, ...]) -> int:
    """Start a daemon and do the steps with it; how many failed."""
    failed = 0
    try:
        async with _daemon(folder, apps) as scene:
            for step in steps:
                failed += not await perform(step, scene)
    except ClientError as error:
        _line(_RED, "!", str(error))
        failed += 1
    return failed


async def perform(step: Step, scene: Scene, *, seconds: float = STEP_SECONDS) -> bool:
    """Do one step and show it; whether it behaved."""
    out("")
    out(_styled(_BOLD, step.title))
    problem = None
    try:
        with anyio.fail_after(seconds):
            await step.act(scene)
    except (ClientError, Unexpected) as error:
        problem = f"{type(error).__name__}: {error}"
    except TimeoutError:
        problem = f"nothing happened within {seconds:g} s"
    sent, received = scene.wire.take()
    for colour, mark, messages in ((_CYAN, "→", sent), (_PURPLE, "←", received), (_YELLOW, "log", scene.heard.log)):
        for message in messages:
            _line(colour, mark, message)
    scene.heard.log.clear()
    if problem is None:
        out(f"  {_styled(_DIM, step.why)}")
    else:
        _line(_RED, "!", problem)
    return problem is None


@asynccontextmanager
async def _daemon(folder: str, apps: tuple[str, ...]) -> AsyncGenerator[Scene]:
    command = [sys.executable, "-P", "-m", "discreet", "serve", *apps]
    heard = Heard()
    async with spawn(command, cwd=folder, env=_environment(), stderr=heard.hear_line) as process:
        wire = Wiretap(process, heard.something)
        async with attach(wire, timeout=STEP_SECONDS, explain=process.explain) as peer:
            peer.on_unidentified_error(heard.hear_error)
            yield Scene(process, peer, wire, heard)


def _environment() -> dict[str, str]:
    """This process's, without settings of the daemon, and with import paths that hold in another directory."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DISCREET_")}
    if paths := environ.get("PYTHONPATH"):
        environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, paths.split(os.pathsep)))
    return environ


def _line(colour: str, mark: str, message: str) -> None:
    text = printable(message)
    out(f"  {_styled(colour, mark)} {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}")


def _styled(code: str, text: str) -> str:
    """Coloured on a terminal whose user has not set NO_COLOR (no-color.org)."""
    if os.environ.get("NO_COLOR") or sys.stdout is None or not sys.stdout.isatty():
        return text
    return f"\x1b[{code}m{text}\x1b[0m"
