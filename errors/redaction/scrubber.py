"""The scrubber: its layers in their order, the work budget, and the promise that a second round changes nothing.

Cheap to import: the layers, and with them every pattern, are loaded by the first text that needs them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, final

from .layers.known import KnownSecrets

if TYPE_CHECKING:
    from .environment import Environment
    from .pipeline import Pipeline

FIELD_CHARACTERS = 8192
"""What is kept of one field of a log event (8 KiB)."""


class ScrubLimits(NamedTuple):
    """What one call may cost."""

    characters: int = 8 * 1024 * 1024
    """What is read of one text; the rest is cut."""
    steps: int = 4096
    """Looks and replacements in one text, besides one for each twelve characters of it."""


@final
class Scrubber:
    """Removes secrets and paths from texts and values. Safe to use from any thread.

    Every method is total: no input raises, whatever its size or its characters. What the work budget does not cover
    is removed (`<cut>`), never let through. Scrubbing what is already scrubbed changes nothing.
    """

    def __init__(self, *, limits: ScrubLimits = ScrubLimits(), fast: bool = True) -> None:  # noqa: B008 - immutable
        """`fast=False` keeps to the prefilter in plain Python even where `ahocorasick_rs` is installed."""
        self._limits = limits
        self._fast = fast
        self._known = KnownSecrets()
        self._lock = threading.Lock()
        self._environments: list[Environment] = []
        self._built: Pipeline | None = None

    @property
    def _pipeline(self) -> Pipeline:
        return self._built or self._build()

    def _build(self) -> Pipeline:
        from .pipeline import Pipeline  # late: compiles patterns

        with self._lock:
            if self._built is None:
                pipeline = Pipeline(self._known, self._limits, fast=self._fast)
                for environment in self._environments:
                    pipeline.paths.learn(users=environment.users, homes=environment.homes)
                self._built = pipeline
            return self._built

    def register(self, secret: str) -> None:
        """Hide this value from now on, in plain, JSON, URL, base64 and `repr` spelling, and each of its lines.

        Values of fewer than 8 characters and common words are ignored: hiding them would hide the log. At most 1,024
        values are kept; beyond that the first one registered is forgotten.
        """
        self._known.add(secret)

    def unregister(self, secret: str) -> None:
        """Forget a registered value; unknown ones are ignored."""
        self._known.discard(secret)

    def load_environment(self, environ: Mapping[str, str]) -> None:
        """Register the values of variables whose names tell, and learn the names of the account and its home."""
        from .environment import read

        environment = read(environ)
        for secret in environment.secrets:
            self._known.add(secret)
        with self._lock:
            self._environments.append(environment)
            if self._built is not None:
                self._built.paths.learn(users=environment.users, homes=environment.homes)

    def scrub(self, text: str, *, cap: int | None = None) -> str:
        """All layers over one text. With `cap`, at most that many characters: scrubbed, cut, and scrubbed again."""
        return self._pipeline.scrub(text, cap=cap)

    def scrub_secrets(self, text: str) -> tuple[str, int]:
        """The text without secrets, paths as they are, and how many were removed."""
        return self._pipeline.scrub_secrets(text)

    def finds_secret(self, text: str) -> bool:
        """Whether any layer, that for paths included, would change the text."""
        return self._pipeline.scrub(text) != text

    def scrub_fields(self, value: object, *, cap: int = FIELD_CHARACTERS) -> object:
        """A scrubbed copy of any value as dicts, lists, texts, numbers, booleans and None; `cap` is for each text."""
        from .values import Copier

        return Copier(self._pipeline, cap=cap).copy(value)

    def scrub_details(self, value: object) -> tuple[object, int]:
        """A JSON value without secrets in its texts, and how many were removed; the value itself when there were none."""
        from .values import scrub_details

        return scrub_details(self._pipeline, value)

    def scrub_exception(self, exc: BaseException) -> str:
        """The traceback of an exception and of all it came from, scrubbed and bounded, without source and locals."""
        from .tracebacks import render

        return render(exc, self._pipeline)


DEFAULT = Scrubber()
"""The instance behind the module's functions: one store of known secrets for the process."""

register = DEFAULT.register
unregister = DEFAULT.unregister
load_environment = DEFAULT.load_environment
scrub = DEFAULT.scrub
scrub_secrets = DEFAULT.scrub_secrets
scrub_fields = DEFAULT.scrub_fields
scrub_details = DEFAULT.scrub_details
scrub_exception = DEFAULT.scrub_exception
finds_secret = DEFAULT.finds_secret
