"""Renders an exception for the log: what, where and what it came from. Never source lines, never locals.

Walks the frames itself instead of calling `traceback`, which reads source files from disk: the lines may hold
secrets, and a log line must not wait for a disk. Bounded in frames, links, messages and size.
"""

from __future__ import annotations

from types import TracebackType

from .layers.paths import reduce_path
from .marks import CUT
from .pipeline import Pipeline
from .safe_call import guarded

_CHARACTERS = 16_384  # of the whole
_MESSAGE = 2048  # characters of one exception's message or note
_FRAMES_FIRST = 8  # where the call came from …
_FRAMES_LAST = 24  # … and where it failed; what lies between is counted
_LINKS = 16  # exceptions of one chain or of one group
_DEPTH = 6  # groups within groups
_NOTES = 8

_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"


def render(exc: BaseException, pipeline: Pipeline) -> str:
    """The scrubbed text, oldest exception first, as Python itself orders them; at most 16 KiB."""
    lines: list[str] = []
    _chain(exc, lines, "", _DEPTH, pipeline)
    text = pipeline.scrub("\n".join(lines))
    if len(text) <= _CHARACTERS:
        return text
    head = text[: _CHARACTERS // 4].rpartition("\n")[0]
    tail = text[-_CHARACTERS * 5 // 8 :].partition("\n")[2]
    return pipeline.scrub(f"{head}\n{CUT}\n{tail}", cap=_CHARACTERS)


def _chain(exc: BaseException, lines: list[str], indent: str, depth: int, pipeline: Pipeline) -> None:
    links = _links(exc)
    for link, text in reversed(links):
        _one(link, lines, indent, depth, pipeline)
        if text:
            lines += ["", indent + text, ""]


def _links(exc: BaseException) -> list[tuple[BaseException, str]]:
    """The exceptions that led to this one, newest first, each with the text that joins it to the next newer one."""
    links: list[tuple[BaseException, str]] = []
    seen: set[int] = set()
    text = ""
    link: BaseException | None = exc
    while link is not None and id(link) not in seen and len(links) < _LINKS:
        seen.add(id(link))
        links.append((link, text))
        if link.__cause__ is not None:
            link, text = link.__cause__, _CAUSE
        elif not link.__suppress_context__:
            link, text = link.__context__, _CONTEXT
        else:
            link = None
    return links


def _one(exc: BaseException, lines: list[str], indent: str, depth: int, pipeline: Pipeline) -> None:
    if exc.__traceback__ is not None:
        lines.append(f"{indent}Traceback (most recent call last):")
        lines.extend(indent + line for line in _frames(exc.__traceback__))
    name = type(exc).__qualname__
    module = type(exc).__module__
    title = name if module in ("builtins", "__main__") else f"{module}.{name}"
    message = _text(exc, pipeline)
    lines.extend(indent + line for line in (f"{title}: {message}" if message else title).split("\n"))
    notes = getattr(exc, "__notes__", None)
    for note in list(notes)[:_NOTES] if isinstance(notes, (list, tuple)) else ():
        lines.extend(indent + line for line in _text(note, pipeline).split("\n"))
    if isinstance(exc, BaseExceptionGroup):
        _members(exc.exceptions, lines, indent, depth, pipeline)


def _members(members: tuple[BaseException, ...], lines: list[str], indent: str, depth: int, pipeline: Pipeline) -> None:
    for number, member in enumerate(members[:_LINKS], 1):
        lines.append(f"{indent}  +- {number} of {len(members)}")
        if depth <= 0:
            lines.append(f"{indent}  | {CUT}")
        else:
            _chain(member, lines, f"{indent}  | ", depth - 1, pipeline)
    if len(members) > _LINKS:
        lines.append(f"{indent}  +- {len(members) - _LINKS} more {CUT}")


def _frames(traceback: TracebackType | None) -> list[str]:
    frames: list[str] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append(f'  File "{reduce_path(code.co_filename)}", line {traceback.tb_lineno}, in {code.co_qualname}')
        traceback = traceback.tb_next
    left_out = len(frames) - _FRAMES_FIRST - _FRAMES_LAST
    if left_out <= 0:
        return frames
    return [*frames[:_FRAMES_FIRST], f"  … {left_out} frames {CUT}", *frames[-_FRAMES_LAST:]]


def _text(value: object, pipeline: Pipeline) -> str:
    text = guarded(lambda: str(value))
    return "<unprintable>" if text is None else pipeline.scrub(str.__str__(text), cap=_MESSAGE)
