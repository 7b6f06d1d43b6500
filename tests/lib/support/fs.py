"""What the tests of the file service share: a request, and what became of a call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet import OperationError
from support.waits import DEADLINE_SECONDS

SECRET = "the secret outside"


def lay_out(place: Path) -> Path:
    """A root with files, directories and links out of it and within it, next to what must stay out of reach."""
    (place / "outside" / "deep").mkdir(parents=True)
    (place / "outside" / "secret.txt").write_text(SECRET)
    (place / "outside" / "deep" / "secret.txt").write_text(SECRET)
    root = place / "root"
    (root / "a" / "b").mkdir(parents=True)
    (root / "top.txt").write_text("inside top")
    (root / "a" / "one.txt").write_text("inside one")
    (root / "a" / "b" / "two.txt").write_text("inside two")
    (root / "to_file").symlink_to("../outside/secret.txt")
    (root / "to_directory").symlink_to(place / "outside")
    (root / "to_inside").symlink_to("a")
    (root / "to_itself").symlink_to("to_itself")
    (root / "to_nothing").symlink_to("missing")
    (root / "a" / "up").symlink_to("../..")
    return root


class Cancelled(Exception):
    pass


class Request:
    """A request that is cancelled once it has looked `looks` times; without a number, never. `held` counts its memory."""

    def __init__(self, looks: int | None = None) -> None:
        self.left = looks
        self.held = 0

    def hold_memory(self, size: int) -> None:
        self.held += size

    def check_cancelled(self) -> None:
        if self.left is None:
            return
        if self.left == 0:
            raise Cancelled
        self.left -= 1


CTX = Request()


def refusal(act: Callable[..., object], *args: object) -> OperationError:
    """The declared error that a call raises."""
    with pytest.raises(OperationError) as caught:
        act(*args)
    return caught.value


def finishes(act: Callable[[], object]) -> OperationError | None:
    """The declared error that a call raises, if any. A call that blocks fails the test instead of holding it up."""
    raised: list[OperationError | None] = []

    def run() -> None:
        try:
            act()
        except OperationError as error:
            raised.append(error)
        else:
            raised.append(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(DEADLINE_SECONDS)
    assert raised, "blocked"
    return raised[0]
