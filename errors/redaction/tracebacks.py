"""Renders an exception for the log: type, message, notes, frames, causes. Never locals.

Walks the frames itself instead of calling `traceback`: a log line for machines must not wait for the disk that has the source
files. Frames, chained exceptions, messages and the whole text are bounded. Frames of this package on the way to the
program's own are one line: they say nothing to its author.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import PurePath
from types import CodeType, ModuleType, TracebackType
from typing import final

from ..nearest import nearest_hint
from .limits import CUT
from .paths import reduce_path
from .pipeline import Pipeline
from .safe_call import call_or_none, type_name

_MAX_CHARACTERS = 16_384  # of the whole text
_MAX_MESSAGE = 2048  # characters of one exception's message or note
_FIRST_FRAMES = 8  # where the call came from
_LAST_FRAMES = 24  # where it failed; the frames between are counted
_MAX_EXCEPTIONS = 16  # of one chain or of one group
_MAX_DEPTH = 6  # groups within groups
_MAX_NOTES = 8
_MAX_SOURCE = 160  # characters of a line of source text

_PACKAGE = str(PurePath(__file__).parents[2]) + os.sep

_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"


def render_exception(exc: BaseException, pipeline: Pipeline, *, source: bool = False) -> str:
    """The scrubbed text, oldest exception first, as Python orders them; at most 16 KiB.

    With `source`, each frame of the program is followed by its line of source text. That reads files.
    """
    rendering = _Rendering(pipeline, source=source)
    rendering.add_chain(exc, "", _MAX_DEPTH)
    text = pipeline.scrub("\n".join(rendering.lines))
    if len(text) <= _MAX_CHARACTERS:
        return text
    head = text[: _MAX_CHARACTERS // 4].rpartition("\n")[0]
    tail = text[-_MAX_CHARACTERS * 5 // 8 :].partition("\n")[2]
    return pipeline.scrub(f"{head}\n{CUT}\n{tail}", cap=_MAX_CHARACTERS)


@final
class _Rendering:
    """The lines of one exception so far."""

    def __init__(self, pipeline: Pipeline, *, source: bool) -> None:
        self.lines: list[str] = []
        self._pipeline = pipeline
        self._source = source

    def add_chain(self, exc: BaseException, indent: str, depth: int) -> None:
        for member, joining_text in reversed(_chain_of(exc)):
            self._add(member, indent, depth)
            if joining_text:
                self.lines += ["", indent + joining_text, ""]

    def _add(self, exc: BaseException, indent: str, depth: int) -> None:
        if exc.__traceback__ is not None:
            self.lines.append(f"{indent}Traceback (most recent call last):")
            self.lines.extend(indent + line for line in self._frames(exc.__traceback__))
        kind = type(exc)
        title = call_or_none(lambda: _title(kind)) or type_name(exc)
        message = self._scrubbed_text(exc) + (call_or_none(lambda: suggestion(exc)) or "")
        self.lines.extend(indent + line for line in (f"{title}: {message}" if message else title).split("\n"))
        notes = call_or_none(lambda: getattr(exc, "__notes__", None))
        for note in list(notes)[:_MAX_NOTES] if isinstance(notes, (list, tuple)) else ():
            self.lines.extend(indent + line for line in self._scrubbed_text(note).split("\n"))
        if isinstance(exc, BaseExceptionGroup):
            self._add_members(exc.exceptions, indent, depth)

    def _add_members(self, members: tuple[BaseException, ...], indent: str, depth: int) -> None:
        for number, member in enumerate(members[:_MAX_EXCEPTIONS], 1):
            self.lines.append(f"{indent}  +- {number} of {len(members)}")
            if depth <= 0:
                self.lines.append(f"{indent}  | {CUT}")
            else:
                self.add_chain(member, f"{indent}  | ", depth - 1)
        if len(members) > _MAX_EXCEPTIONS:
            self.lines.append(f"{indent}  +- {len(members) - _MAX_EXCEPTIONS} more {CUT}")

    def _frames(self, traceback: TracebackType) -> list[str]:
        frames = [line for ours, group in groupby(_steps(traceback), _is_ours) for line in self._group(ours, [*group])]
        left_out = len(frames) - _FIRST_FRAMES - _LAST_FRAMES
        if left_out <= 0:
            return frames
        return [*frames[:_FIRST_FRAMES], f"  … {left_out} frames {CUT}", *frames[-_LAST_FRAMES:]]

    def _group(self, ours: bool, steps: list[TracebackType]) -> list[str]:
        """The lines of frames in a row. Those of this package are counted, unless it is where the exception was raised."""
        if ours and steps[-1].tb_next is not None:
            return [f"  … {len(steps)} frame{'s' if len(steps) > 1 else ''} of discreet"]
        return [self._frame(step) for step in steps]

    def _frame(self, step: TracebackType) -> str:
        code = step.tb_frame.f_code
        line = f'  File "{reduce_path(code.co_filename)}", line {step.tb_lineno}, in {code.co_qualname}'
        text = linecache.getline(code.co_filename, step.tb_lineno).strip() if self._source else ""
        return f"{line}\n    {text[:_MAX_SOURCE]}" if text else line

    def _scrubbed_text(self, value: object) -> str:
        text = call_or_none(lambda: str(value))
        return "<unprintable>" if text is None else self._pipeline.scrub(str.__str__(text), cap=_MAX_MESSAGE)


def _title(kind: type) -> str:
    """The name of an exception's class as Python shows it."""
    name, module = str.__str__(kind.__qualname__), str.__str__(kind.__module__)
    return name if module in ("builtins", "__main__") else f"{module}.{name}"


def suggestion(exc: BaseException) -> str:
    """`; nearest: NAME`, for an attribute that its object does not have but nearly has; else empty."""
    if not isinstance(exc, AttributeError) or not isinstance(exc.name, str):
        return ""
    known = vars(exc.obj) if isinstance(exc.obj, ModuleType) else dir(type(exc.obj))
    return "" if "; nearest: " in str(exc) else nearest_hint(exc.name, (name for name in known if name[:1] != "_"))


def _steps(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_ours(step: TracebackType) -> bool:
    return is_ours(step.tb_frame.f_code)


def is_ours(code: CodeType) -> bool:
    """Whether this is code of this package, and so none of the program's."""
    return code.co_filename.startswith(_PACKAGE)


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
