"""The work budget of one call: counts its steps and stops it. Never looks at what a step does."""

from __future__ import annotations

from .marks import REDACTED

CHARACTERS_PER_STEP = 16
"""How many characters add a step to the budget: a secret with its name is rarely shorter."""


class BudgetExhaustedError(Exception):
    """The budget is used up. The caller must remove the rest of the text."""


class WorkBudget:
    """A number of steps, and what was replaced. Past the budget every step raises `BudgetExhaustedError`."""

    __slots__ = ("_left", "replaced")

    def __init__(self, steps: int, characters: int) -> None:
        self.replaced: list[tuple[str, str]] = []
        """Each secret, and its name or an empty text."""
        self._left = steps + characters // CHARACTERS_PER_STEP

    def step(self) -> None:
        """Count one check of a value, whatever its outcome."""
        self._left -= 1
        if self._left < 0:
            raise BudgetExhaustedError

    def replace(self, secret: str, name: str = "") -> str:
        """Count one replacement; returns the mark that stands for the secret."""
        self.replaced.append((secret, name))
        self.step()
        return REDACTED
