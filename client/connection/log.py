"""Logs through `logging` under the name `discreet.client`. Never logs what a message holds.

Logs only what no caller learns otherwise: calls raise their errors and are not logged.
"""

from __future__ import annotations

from typing import Final

LOGGER_NAME: Final = "discreet.client"


def exception(what: str, exc: Exception) -> None:
    """An error with its traceback: `what`, a handler of the program's own, raised `exc`."""
    import logging  # late: most connections log nothing

    logging.getLogger(LOGGER_NAME).error("%s failed", what, exc_info=exc)


def warning(message: str) -> None:
    """Something that a waiting caller should know."""
    import logging

    logging.getLogger(LOGGER_NAME).warning("%s", message)


def debug(message: str) -> None:
    """Something that helps to explain odd behaviour."""
    import logging

    logging.getLogger(LOGGER_NAME).debug("%s", message)
