"""The work budget of one call: counts what it costs and ends it. Knows nothing of what the work is."""

from __future__ import annotations

from .marks import REDACTED

PER_CHARACTER = 1 / 12
"""What each character adds to the budget: a secret with its name is rarely shorter than twelve."""


class BudgetExhaustedError(Exception):
    """The budget is used up: what is left of the text must go."""


class WorkBudget:
    """Raises `BudgetExhaustedError` from the step on that the budget does not cover."""

    def __init__(self, steps: int, characters: int) -> None:
        self.hits = 0
        self._left = steps + int(characters * PER_CHARACTER)

    def step(self) -> None:
        """One look at a value, whatever comes of it."""
        self._left -= 1
        if self._left < 0:
            raise BudgetExhaustedError

    def replace(self, _secret: str) -> str:
        """The mark for one secret."""
        self.hits += 1
        self.step()
        return REDACTED
