"""The public scrubber: registered secrets, one pipeline, and one method for each kind of input.

Cheap to import: the layers, and with them every pattern, are loaded by the first text that needs them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple, final

from .known_secrets import KnownSecrets
from .limits import MAX_FIELD_CHARACTERS, REDACTED, ScrubLimits
from .safe_call import call_or_none, pairs_of, text_of
from .sensitivity import Sensitivity, name_sensitivity

if TYPE_CHECKING:
    from .pipeline import Pipeline


# A caller chooses its credentials. If any text were redacted, a caller could make the log unreadable with a credential such
# as `request.failed`. So only what looks random is redacted, and it never displaces the program's own secrets.

MAX_CALLER_SECRETS: Final = 256
"""Secrets of callers that are kept."""

MAX_CALLER_CHARACTERS: Final = 128 * 1024
"""Characters of all secrets of callers that are kept."""

MAX_CALLER_SECRET_LENGTH: Final = 16 * 1024
"""Characters of the longest secret that is kept: more than HTTP servers accept in a header."""

LIFETIME_SECONDS: Final = 3600.0
"""How long after its last use a caller's secret is kept."""


@final
class Scrubber:
    """Removes secrets and paths from texts and values. Safe to use from any thread.

    Every method is total: no input raises, whatever its size or its characters. Text that the work budget does not
    cover is replaced by `<cut>`, never let through. Scrubbing a scrubbed text changes nothing.
    """

    def __init__(
        self,
        *,
        limits: ScrubLimits = ScrubLimits(),  # noqa: B008 - immutable
        fast: bool = True,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`fast=False` uses the prefilter in plain Python even where `ahocorasick_rs` is installed. `clock` is in seconds."""
        self._limits = limits
        self._fast = fast
        self._known = KnownSecrets()
        self._callers = KnownSecrets(
            most=MAX_CALLER_SECRETS, most_characters=MAX_CALLER_CHARACTERS, lifetime=LIFETIME_SECONDS, clock=clock
        )
        self._lock = threading.Lock()
        self._environments: list[_SensitiveValues] = []
        self._built: Pipeline | None = None

    @property
    def _pipeline(self) -> Pipeline:
        return self._built or self._build()

    def _build(self) -> Pipeline:
        from .pipeline import Pipeline  # late: compiles patterns

        with self._lock:
            if self._built is None:
                pipeline = Pipeline((self._known, self._callers), self._limits, fast=self._fast)
                for found in self._environments:
                    pipeline.paths.add_names(users=found.users, homes=found.homes)
                self._built = pipeline
            return self._built

    def register(self, secret: str) -> None:
        """Redact this value from now on, in every encoding in which logs show texts, and each of its lines.

        Values of fewer than 8 characters and common words are ignored: redacting them would make logs unreadable. At
        most 1,024 values and 524,288 characters are kept; past that the one registered first is forgotten.
        """
        self._known.add(text_of(secret))

    def unregister(self, secret: str) -> None:
        """Forget a registered value; unknown ones are ignored."""
        self._known.discard(text_of(secret))

    def register_caller_secret(self, secret: str) -> None:
        """Redact this credential of a caller for an hour after its last use, if it looks random.

        A caller chooses its credentials: words would make logs unreadable. Callers have a store of their own, of at most
        256 secrets, and never displace a registered value.
        """
        from .secret_values import looks_random  # late: compiles patterns

        text = text_of(secret)
        if len(text) <= MAX_CALLER_SECRET_LENGTH and looks_random(text):
            self._callers.add(text)

    def load_environment(self, environ: Mapping[str, str]) -> None:
        """Register the secrets of an environment, and redact its account names and home directories from now on."""
        found = _sensitive_values({name: text_of(value) for name, value in pairs_of(environ)})
        for secret in found.secrets:
            self._known.add(secret)
        with self._lock:
            if found in self._environments:
                return
            self._environments.append(found)
            if self._built is not None:
                self._built.paths.add_names(users=found.users, homes=found.homes)

    def scrub(self, text: object, *, cap: int | None = None) -> str:
        """Return the text without secrets and paths. With `cap`, at most so many characters: scrubbed, cut, scrubbed again."""
        return self._pipeline.scrub(text_of(text), cap=cap)

    def scrub_secrets(self, text: str) -> tuple[str, int]:
        """Return the text without secrets but with its paths, and the number of replacements."""
        return self._pipeline.scrub_secrets(text_of(text))

    def find_secrets(self, text: str) -> tuple[str, list[tuple[str, str]]]:
        """Return the text without secrets but with its paths; and each removed secret, with its name if it has one."""
        return self._pipeline.find_secrets(text_of(text))

    def scrub_name(self, text: str) -> str:
        """Scrub a text, but don't compare a name of plain words with known values.

        For the program's own names of methods, fields and loggers: if one of them were a registered secret, the log would be
        unreadable.
        """
        return self._pipeline.scrub_name(text_of(text))

    def scrub_known(self, text: str) -> str:
        """Return the text without registered secrets; nothing else is looked for."""
        return self._known.scrub(text_of(text), lambda _: REDACTED)

    def finds_secret(self, text: str) -> bool:
        """Tell whether `scrub` would change the text. A path counts too."""
        text = text_of(text)
        return self._pipeline.scrub(text) != text

    def scrub_fields(self, value: object, *, cap: int = MAX_FIELD_CHARACTERS) -> object:
        """Return a scrubbed copy of any value, made of dicts, lists, texts, numbers, booleans, None. `cap` is for each text."""
        from .values import ValueScrubber

        return ValueScrubber(self._pipeline, cap=cap).scrub(value)

    def scrub_event(
        self,
        fields: Mapping[str, object],
        *,
        program_names: Collection[str] = (),
        whole_paths: Collection[str] = (),
        cap: int = MAX_FIELD_CHARACTERS,
    ) -> dict[str, object]:
        """Return scrubbed copies of the fields of a log event, each by itself: no field can change or hide another.

        Field names, and texts in the fields `program_names`, are scrubbed as `scrub_name` does it, texts in the fields
        `whole_paths` as `scrub_secrets` does.
        """
        from .values import scrub_event

        return scrub_event(
            self._pipeline, pairs_of(fields), program_names=program_names, whole_paths=whole_paths, cap=cap
        )

    def scrub_details(self, value: object, *, declared: Collection[str] = ()) -> tuple[object, int]:
        """Return a JSON value without secrets in its texts, and the number of replacements; the same object without any.

        `declared` are texts that are known to be none, such as the members of a closed list.
        """
        from .values import scrub_json

        return call_or_none(lambda: scrub_json(self._pipeline, value, declared)) or (REDACTED, 1)

    def redactions(self) -> int:
        """How many secrets were replaced so far, about. Paths don't count."""
        return 0 if self._built is None else self._built.redactions

    def scrub_exception(self, exc: BaseException, *, source: bool = False) -> str:
        """Return the scrubbed traceback of an exception, its causes and contexts; at most 16 KiB, no locals.

        With `source`, each frame is followed by its line of source text, scrubbed too. That reads files.
        """
        from .tracebacks import render_exception

        text = call_or_none(lambda: render_exception(exc, self._pipeline, source=source))
        return self.scrub(exc) if text is None else text


_ACCOUNT_VARIABLES = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
_HOME_VARIABLES = ("HOME", "USERPROFILE")
_DIRECTORIES = frozenset({"PWD", "OLDPWD"})  # POSIX: working directories, not passwords
_MIN_ACCOUNT_LENGTH = 3
# Account names that are ordinary words of logs: replacing them everywhere would make the log unreadable.
_SHARED_ACCOUNTS = frozenset(
    "root admin administrator user users daemon nobody ubuntu debian fedora centos alpine runner app application node"
    " python www www-data web nginx postgres mysql redis jenkins gitlab github build builder ci deploy docker test"
    " tester guest default system service vagrant pi dev developer path redacted cut home data worker server client"
    " agent main master local localhost public".split()
)
_URL_PASSWORD = r"://[^\s:/@]{0,128}:([^\s@/]{1,256})@"


class _SensitiveValues(NamedTuple):
    """The sensitive values of an environment."""

    secrets: tuple[str, ...]
    users: tuple[str, ...]
    homes: tuple[str, ...]


def _sensitive_values(environ: Mapping[str, str]) -> _SensitiveValues:
    """Values of variables with a sensitive name, passwords in the URLs of any variable, accounts and home directories."""
    secrets = [
        value
        for name, value in environ.items()
        if name_sensitivity(name) is Sensitivity.CERTAIN and name not in _DIRECTORIES
    ]
    secrets += [found[1] for value in environ.values() if "://" in value and (found := re.search(_URL_PASSWORD, value))]
    homes = tuple(home for name in _HOME_VARIABLES if (home := environ.get(name, "")))
    accounts = {environ.get(name, "") for name in _ACCOUNT_VARIABLES}
    accounts |= {re.split(r"[\\/]", home.rstrip("\\/"))[-1] for home in homes}
    users = sorted(
        name for name in accounts if len(name) >= _MIN_ACCOUNT_LENGTH and name.lower() not in _SHARED_ACCOUNTS
    )
    return _SensitiveValues(tuple(secrets), tuple(users), homes)


DEFAULT = Scrubber()
"""The instance behind the module's functions: one store of known secrets for the process."""

register = DEFAULT.register
unregister = DEFAULT.unregister
register_caller_secret = DEFAULT.register_caller_secret
load_environment = DEFAULT.load_environment
scrub = DEFAULT.scrub
scrub_secrets = DEFAULT.scrub_secrets
find_secrets = DEFAULT.find_secrets
scrub_name = DEFAULT.scrub_name
scrub_known = DEFAULT.scrub_known
scrub_fields = DEFAULT.scrub_fields
scrub_event = DEFAULT.scrub_event
scrub_details = DEFAULT.scrub_details
scrub_exception = DEFAULT.scrub_exception
finds_secret = DEFAULT.finds_secret
redactions = DEFAULT.redactions
