"""What a frame says: where it stands, whose code it runs, and whether it only waits."""

from __future__ import annotations

import dis
import inspect
from os.path import basename
from types import FrameType
from typing import Final

from ...errors.redaction.tracebacks import is_ours

_MAY_WAIT: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_YIELD: Final = dis.opmap["YIELD_VALUE"]


def place_of(frame: FrameType) -> str:
    """`app.py:12 function`."""
    return f"{basename(frame.f_code.co_filename)}:{frame.f_lineno} {frame.f_code.co_qualname}"


def is_of_discreet(frame: FrameType) -> bool:
    """Whether it runs code of this package."""
    return is_ours(frame.f_code)


def leaves_program(frame: FrameType) -> bool:
    """Whether a frame that returns was called by this package, so that none of the program's code comes next.

    A coroutine that waits returns, too, and goes on later.
    """
    code = frame.f_code
    waits = code.co_flags & _MAY_WAIT and code.co_code[frame.f_lasti] == _YIELD
    return not waits and not is_ours(code) and frame.f_back is not None and is_ours(frame.f_back.f_code)
