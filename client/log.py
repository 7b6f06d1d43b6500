"""What the client tells whoever runs it, through `logging` under the name `discreet.client`: never what a message holds.

Only what nobody else would hear of: calls raise their errors, and say nothing here.
"""

from __future__ import annotations

from typing import Final

NAME: Final = "discreet.client"


def failed(what: str, exc: Exception) -> None:
    """A handler, which is somebody else's code, raised `exc`: an error with its traceback."""
    import logging  # late: most connections have nothing to tell

    logging.getLogger(NAME).error("%s failed", what, exc_info=exc)


def warn(message: str) -> None:
    """Something that whoever waits should know."""
    import logging

    logging.getLogger(NAME).warning("%s", message)


def mention(message: str) -> None:
    """Something that explains what is odd to whoever looks for it."""
    import logging

    logging.getLogger(NAME).debug("%s", message)
