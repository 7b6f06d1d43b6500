"""Where a `Content-Length` stream can stand, and what leads from there (docs/protocol.md, section 1.1).

    in-step         a block is due. `{` or `[`: unframed. Else: in-block.
    after-block     the same behind a faulty block; a text without a block is part of that loss and not reported again.
    in-block        usable length: in-body or skipping-body. No usable length: fault, after-block. Malformed or too
                    large: dropping-block. A block that began in doubt and has no usable length: cut-text or quarantine.
    in-body         last byte: frame, in-step; there the caller may refuse the body, which leads into doubt.
    skipping-body   last byte of a body that is too large, or of another type: fault, in-step.
    dropping-block  blank line: fault, after-block.
    unframed        end of the text: fault, in-step. It turns out to be no JSON: quarantine.
    doubt-whole     behind a body that was no JSON but cannot have been cut: only a block may follow, as in-block.
    doubt-cut       behind a body that only began a JSON text: a block may follow, or else the text goes on.
    cut-text        end of the text: doubt-whole. It turns out to be no JSON: quarantine.
    quarantine      nothing leads out but a rest or the end of the input.
    reporting       a fault waits to be read; then the state that it left behind.

Line ends before a block count for nothing.

A rest leads from every state that drops or doubts to in-step. A frame time-out leads from in-block and skipping-body to
doubt-whole, from in-body to either doubt. Silence brought the time-out about, so silence alone cannot settle the doubt,
or the late tail would start afresh: such a doubt outlasts rests until something has come.

The fault of doubt-whole is reported at once, since a frame may follow at once; that of doubt-cut when it is resolved.
The end of the input reports what is unfinished or being dropped, and leads to in-step, where it stays.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

State: TypeAlias = Literal[
    "in-step",
    "after-block",
    "in-block",
    "in-body",
    "skipping-body",
    "dropping-block",
    "unframed",
    "doubt-whole",
    "doubt-cut",
    "cut-text",
    "quarantine",
    "reporting",
]

MID_FRAME: Final[frozenset[State]] = frozenset({"in-block", "in-body", "skipping-body"})
"""The frame deadline runs. A body's declared length is final here, a rest changes nothing (rule 1)."""

CLEAN: Final[frozenset[State]] = frozenset({"in-step", "in-block", "in-body"})
"""Nothing is wrong: the bytes of the frame that has begun tell all there is to tell."""

DOUBT: Final[frozenset[State]] = frozenset({"doubt-whole", "doubt-cut"})

REST_ENDS: Final[frozenset[State]] = frozenset({"after-block", "dropping-block", "unframed", "cut-text", "quarantine"})
"""A rest leads to in-step (rule 8). It also ends a doubt, and a block that began in doubt, see above."""
