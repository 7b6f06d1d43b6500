"""Reads whole numbers however they are written: to JSON Schema `5.0` and `5e0` are integers, to the decoder they are not."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from ...daemon.dispatch.execution import Raised, attempt_now
from ...daemon.operations.params import InputModel
from ...errors.exceptions import FailureError

_MAYBE_WHOLE: Final = re.compile(rb"\d(?:\.0*[,\]}\s]|\.0*$|(?:\.\d+)?[eE])").search
"""Finds what may be such a number; most bodies hold none. One in a string does no harm."""
_STRING_OR_NUMBER: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?', re.DOTALL)

_MAX_EXPONENT: Final = 400
"""Numbers with more digits are left as they are: no float is larger."""

MAX_BYTES: Final = 16 * 1024
"""Larger params are left as they are: to look at each of their numbers takes the loop too long, and what is written in five
bytes may have hundreds of digits."""


def with_whole_numbers(params: bytes, model: InputModel) -> bytes:
    """Params as JSON text, in which whole numbers are written as integers if the input takes them only so.

    Else they stay as they came: a decimal keeps its zeros. So do those that are large.
    """
    if len(params) > MAX_BYTES or not _MAYBE_WHOLE(params):
        return params
    taken = attempt_now(lambda: model.decode(params))
    if not (isinstance(taken, Raised) and isinstance(taken.exc, FailureError)):
        return params
    return _STRING_OR_NUMBER.sub(_plain, params)


def _plain(found: re.Match[bytes]) -> bytes:
    text = found[0]
    if text.startswith(b'"') or not (b"." in text or b"e" in text or b"E" in text):
        return text
    try:
        number = Decimal(text.decode())
    except ArithmeticError:  # its exponent is beyond those of decimals
        return text
    is_whole = abs(number.adjusted()) <= _MAX_EXPONENT and number == number.to_integral_value()
    return b"%d" % int(number) if is_whole else text
