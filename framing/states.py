"""The states of the `Content-Length` parser, and the transitions between them (docs/protocol.md, section 1.1).

    in-step         a block is due. `{` or `[`: unframed. Any other byte: in-block.
    after-block     the same after a faulty block; an unframed text is part of that loss and not reported again.
    in-block        usable length: in-body or skipping-body. No usable length, malformed or too large: dropping-block.
                    A block that began in doubt and has no usable length: cut-text or quarantine.
    in-body         last byte: frame, in-step. If the caller refuses the body: one of the doubts.
    skipping-body   last byte of a body that is too large, or of another type: fault, in-step.
    dropping-block  blank line: fault, after-block, or skipping-refused if the block declares a length. It declares two
                    different lengths: quarantine.
    skipping-refused  last byte of the body of a block that was refused: doubt-whole.
    unframed        end of the text: fault, in-step. It turns out to be no JSON: quarantine.
    doubt-whole     after a body that was no JSON and was not cut short: only a block may follow, as in-block.
    doubt-cut       after a body that was the beginning of a JSON text: a block may follow, or else the text goes on.
    cut-text        end of the text: doubt-whole. It turns out to be no JSON: quarantine.
    quarantine      only silence or the end of input ends it.
    reporting       a fault is due; then the state that was remembered.

Line ends before a block are skipped.

Silence leads from every state that drops or doubts to in-step. A frame time-out leads from in-block and the skipping of a
body to doubt-whole, and from in-body to one of the doubts. Silence caused the time-out, so silence alone does not end such a
doubt, or the late rest of the frame would be read as a new one: the doubt outlasts silence until more bytes arrive.

The fault of doubt-whole is reported at once, since a frame may follow at once; that of doubt-cut when the doubt ends. The
end of input reports what is unfinished or being dropped, and leads to in-step, where it stays.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

ParserState: TypeAlias = Literal[
    "in-step",
    "after-block",
    "in-block",
    "in-body",
    "skipping-body",
    "dropping-block",
    "skipping-refused",
    "unframed",
    "doubt-whole",
    "doubt-cut",
    "cut-text",
    "quarantine",
    "reporting",
]

MID_FRAME: Final[frozenset[ParserState]] = frozenset({"in-block", "in-body", "skipping-body", "skipping-refused"})
"""The frame time-out runs. A declared length is final, so silence changes nothing (rule 1)."""

CLEAN: Final[frozenset[ParserState]] = frozenset({"in-step", "in-block", "in-body"})
"""No fault: the bytes of the current frame describe the whole state."""

DOUBT: Final[frozenset[ParserState]] = frozenset({"doubt-whole", "doubt-cut"})

SILENCE_ENDS: Final[frozenset[ParserState]] = frozenset(
    {"after-block", "dropping-block", "unframed", "cut-text", "quarantine"}
)
"""Silence leads to in-step (rule 8). It also ends a doubt, and a block that began in doubt, see above."""
