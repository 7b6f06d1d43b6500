"""Renders an exception for the log: type, message, notes, frames, causes. Never source lines, never locals.

Walks the frames itself instead of calling `traceback`, which reads source files: the lines may hold secrets, and a log
line must not wait for a disk. Frames, chained exceptions, messages and the whole text are bounded.
"""

from __future__ import annotations

from types import TracebackType

from .layers.paths import reduce_path
from .marks import CUT
from .pipeline import Pipeline
from .safe_call import call_or_none

_MAX_CHARACTERS = 16_384  # of the whole text
_MAX_MESSAGE = 2048  # characters of one exception's message or note
_FIRST_FRAMES = 8  # where the call came from
_LAST_FRAMES = 24  # where it failed; the frames between are counted
_MAX_EXCEPTIONS = 16  # of one chain or of one group
_MAX_DEPTH = 6  # groups within groups
_MAX_NOTES = 8

_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"


def render_exception(exc: BaseException, pipeline: Pipeline) -> str:
    """The scrubbed text, oldest exception first, as Python orders them; at most 16 KiB."""
    lines: list[str] = []
    _render_chain(exc, lines, "", _MAX_DEPTH, pipeline)
    text = pipeline.scrub("\n".join(lines))
    if len(text) <= _MAX_CHARACTERS:
        return text
    head = text[: _MAX_CHARACTERS // 4].rpartition("\n")[0]
    tail = text[-_MAX_CHARACTERS * 5 // 8 :].partition("\n")[2]
    return pipeline.scrub(f"{head}\n{CUT}\n{tail}", cap=_MAX_CHARACTERS)


def _render_chain(exc: BaseException, lines: list[str], indent: str, depth: int, pipeline: Pipeline) -> None:
    for member, joining_text in reversed(_chain_of(exc)):
        _render_one(member, lines, indent, depth, pipeline)
        if joining_text:
            lines += ["", indent + joining_text, ""]


def _chain_of(exc: BaseException) -> list[tuple[BaseException, str]]:
    """The exception and those that led to it, newest first, each with the text that joins it to the next newer one."""
    chain: list[tuple[BaseException, str]] = []
    seen: set[int] = set()
    joining_text = ""
    member: BaseException | None = exc
    while member is not None and id(member) not in seen and len(chain) < _MAX_EXCEPTIONS:
        seen.add(id(member))
        chain.append((member, joining_text))
        if member.__cause__ is not None:
            member, joining_text = member.__cause__, _CAUSE
        elif not member.__suppress_context__:
            member, joining_text = member.__context__, _CONTEXT
        else:
            member = None
    return chain


def _render_one(exc: BaseException, lines: list[str], indent: str, depth: int, pipeline: Pipeline) -> None:
    if exc.__traceback__ is not None:
        lines.append(f"{indent}Traceback (most recent call last):")
        lines.extend(indent + line for line in _render_frames(exc.__traceback__))
    name = type(exc).__qualname__
    module = type(exc).__module__
    title = name if module in ("builtins", "__main__") else f"{module}.{name}"
    message = _scrubbed_text(exc, pipeline)
    lines.extend(indent + line for line in (f"{title}: {message}" if message else title).split("\n"))
    notes = getattr(exc, "__notes__", None)
    for note in list(notes)[:_MAX_NOTES] if isinstance(notes, (list, tuple)) else ():
        lines.extend(indent + line for line in _scrubbed_text(note, pipeline).split("\n"))
    if isinstance(exc, BaseExceptionGroup):
        _render_members(exc.exceptions, lines, indent, depth, pipeline)


def _render_members(
    members: tuple[BaseException, ...], lines: list[str], indent: str, depth: int, pipeline: Pipeline
) -> None:
    for number, member in enumerate(members[:_MAX_EXCEPTIONS], 1):
        lines.append(f"{indent}  +- {number} of {len(members)}")
        if depth <= 0:
            lines.append(f"{indent}  | {CUT}")
        else:
            _render_chain(member, lines, f"{indent}  | ", depth - 1, pipeline)
    if len(members) > _MAX_EXCEPTIONS:
        lines.append(f"{indent}  +- {len(members) - _MAX_EXCEPTIONS} more {CUT}")


def _render_frames(traceback: TracebackType | None) -> list[str]:
    frames: list[str] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append(f'  File "{reduce_path(code.co_filename)}", line {traceback.tb_lineno}, in {code.co_qualname}')
        traceback = traceback.tb_next
    left_out = len(frames) - _FIRST_FRAMES - _LAST_FRAMES
    if left_out <= 0:
        return frames
    return [*frames[:_FIRST_FRAMES], f"  … {left_out} frames {CUT}", *frames[-_LAST_FRAMES:]]


def _scrubbed_text(value: object, pipeline: Pipeline) -> str:
    text = call_or_none(lambda: str(value))
    return "<unprintable>" if text is None else pipeline.scrub(str.__str__(text), cap=_MAX_MESSAGE)
