"""What the help of a verb says beside its flags: examples, the environment, exit statuses. Only `--help` loads it."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from typing import Final

from .exit_status import VERB_STATUSES

_COLUMNS: Final = 100
"""As wide as the flags are shown."""

_SETTINGS: Final = {
    "DISCREET_*": "the settings above: DISCREET_MAX_THREADS for --max-threads, DISCREET_LOG for --log-file;"
    " a flag counts more, a settings file less",
}
_CHILD: Final = {"DISCREET_*": "settings of discreet serve, which is started with them"}
_COLOUR: Final = {"NO_COLOR": "no colours, if it is not empty"}

ENVIRONMENT: Final[Mapping[str, Mapping[str, str]]] = {
    "serve": _SETTINGS | _COLOUR,
    "call": {
        **_CHILD,
        "DISCREET_LOG_LEVEL": "what discreet serve logs to stderr (default here: error)",
        **_COLOUR,
        "TERM": "dumb: no progress on the terminal",
    },
    "demo": _COLOUR,
    "doctor": _SETTINGS,
    "schema": _SETTINGS,
    "card": _SETTINGS,
    "record": {"NO_COLOR": "no colours with --tail, if it is not empty"},
    "show": _COLOUR,
    "generate": {"DISCREET_*": "settings of discreet serve, which count without --server"},
}
"""The variables that a verb reads."""


def sections_of(name: str, examples: Sequence[str]) -> Iterator[str]:
    """Yield the sections that stand below the flags of a verb."""
    if name not in VERB_STATUSES:
        return  # a package adds the verb, and its own flags tell all
    yield "\n".join(("examples:", *(f"  {example}" for example in examples)))
    if name in ENVIRONMENT:
        yield "\n".join(("environment:", *_rows(ENVIRONMENT[name])))
    statuses = {str(status): meaning for status, meaning in VERB_STATUSES[name].items()}
    if name == "record":
        statuses["other"] = "that of COMMAND, or 128 plus the number of the signal that ended it"
    yield "\n".join(("exit status:", *_rows(statuses)))


def _rows(rows: Mapping[str, str]) -> Iterator[str]:
    width = max(map(len, rows))
    for word, meaning in rows.items():
        yield fill(meaning, _COLUMNS, initial_indent=f"  {word:{width}}  ", subsequent_indent=" " * (width + 4))
