"""A hook that keeps the attempts of a call."""

from __future__ import annotations

from discreet.client import Attempt


class Log:
    def __init__(self) -> None:
        self.attempts: list[Attempt] = []

    def on_attempt(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
