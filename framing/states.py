"""The states of the `Content-Length` parser, and the transitions between them (docs/protocol.md, section 1.1).

    in-step         a block is due. `{` or `[`: unframed. Any other byte: in-block.
    after-block     the same after a loss that may go on. A further faulty block or unframed text is part of it.
    after-text      the same, but what follows after a short silence is a loss of its own: it leads to in-step.
    in-block        usable length: in-body or skipping-body. Any other: dropping-block. But in doubt: cut-text or quarantine,
                    unless the block is well-formed and can't be the rest of the body.
    in-body         last byte: frame, in-step. If the caller refuses the body: one of the doubts.
    skipping-body   last byte of a body that is too large, or of another type: in-step.
    dropping-block  blank line: after-block, or skipping-refused if the block declares a length. It declares two different
                    lengths: quarantine.
    skipping-refused  last byte of the body of a block that was refused: doubt-whole.
    unframed        end of the text: after-text. It turns out to be no JSON: quarantine.
    doubt-whole     after a body that was no JSON and was not cut short: only a block may follow, as in-block.
    doubt-cut       after a body that was the beginning of a JSON text: a block may follow, or else the text goes on.
    cut-text        end of the text: doubt-whole. It turns out to be no JSON: quarantine.
    quarantine      only silence or the end of input ends it.
    reporting       faults are due and come next; then the state that was remembered.

Line ends before a block are skipped.

A loss is open from its first byte until the stream is known to be in step: until the next well-formed block, or the last
byte of a skipped body. Whatever else is dropped before that is part of it. Its fault is reported when the next message is
sure to be read, so that who reads the error may send at once (rule 9): in-step, before the frame that follows it, or after
silence. A short silence is enough where a frame is due anyway (READY). A long one ends every other dropping, and a block
that began while a loss was open, and leads to in-step (rule 8).

A frame time-out leads from in-block and the skipping of a body to doubt-whole, and from in-body to one of the doubts. Silence
caused the time-out, so silence alone does not end such a doubt, or the late rest of the frame would be read as a new one: the
doubt outlasts silence until more bytes arrive. The end of input ends everything, and leads to in-step, where it stays.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

ParserState: TypeAlias = Literal[
    "in-step",
    "after-block",
    "after-text",
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

READY: Final[frozenset[ParserState]] = frozenset({"after-block", "after-text", "doubt-whole"})
"""A frame is due although a loss may be open. A short silence makes its fault due."""

DOUBT: Final[frozenset[ParserState]] = frozenset({"doubt-whole", "doubt-cut"})

SILENCE_ENDS: Final[frozenset[ParserState]] = frozenset(
    {"after-block", "dropping-block", "unframed", "cut-text", "quarantine"}
)
"""A long silence leads to in-step (rule 8). It also ends a doubt, and a block that began in one, see above."""
