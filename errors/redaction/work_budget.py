"""The work budget of one call: counts its steps and stops it. Never looks at what a step does."""

from __future__ import annotations

from .marks import REDACTED

STEPS_PER_CHARACTER = 1 / 12
"""What each character adds to the budget: a secret with its name is rarely shorter than twelve."""


class BudgetExhaustedError(Exception):
    """The budget is used up. The caller must remove the rest of the text."""


class WorkBudget:
    """A number of steps, and a count of the replacements. Past the budget every step raises `BudgetExhaustedError`."""

    def __init__(self, steps: int, characters: int) -> None:
        self.replacements = 0
        self._left = steps + int(characters * STEPS_PER_CHARACTER)

    def step(self) -> None:
        """Count one check of a value, whatever its outcome."""
        self._left -= 1
        if self._left < 0:
            raise BudgetExhaustedError

    def replace(self, _secret: str) -> str:
        """Count one replacement; returns the mark that stands for the secret."""
        self.replacements += 1
        self.step()
        return REDACTED
