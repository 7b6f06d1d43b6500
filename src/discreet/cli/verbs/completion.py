"""`discreet completion`: prints completion scripts for shells, and what they ask for by `discreet --complete LINE`.

A completion is a verb, a flag or a value of one. It starts nothing, and prints nothing on any failure.
"""

from __future__ import annotations

import argparse
import shlex
from typing import Final

from ...daemon import plugins
from ...daemon.lifecycle import EXIT_OK
from ...daemon.settings import UsageError
from ...errors.printable import printable
from ..commands import DEFAULT_VERB, load_verb
from ..output import require_stdout, write_stdout

# bash parts words at "=", and completes only what follows it.
_BASH: Final = """\
# bash completion of discreet
_discreet() {
    local cut="" found
    if [[ ${COMP_WORDS[COMP_CWORD]} == "=" || ${COMP_WORDS[COMP_CWORD-1]} == "=" ]]; then cut=1; fi
    COMPREPLY=()
    while IFS= read -r found; do
        if [[ -n $cut ]]; then found=${found#*=}; fi
        COMPREPLY+=("$found")
    done < <("${COMP_WORDS[0]}" --complete "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    if [[ ${COMPREPLY[0]-} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -o default -F _discreet discreet"""

_ZSH: Final = """\
#compdef discreet
_discreet() {
    local line="${(j: :)words[1,CURRENT-1]} $PREFIX"
    local -a found=("${(@f)$($words[1] --complete "$line" 2>/dev/null)}")
    found=(${found:#})
    if (( ! $#found )); then _files; return; fi
    compadd -S '' -- ${(M)found:#*=}
    compadd -- ${found:#*=}
}
if [[ $funcstack[1] == _discreet ]]; then _discreet "$@"; else compdef _discreet discreet; fi"""

_FISH: Final = """\
# fish completion of discreet
complete -c discreet -a '(discreet --complete (commandline -cp) 2>/dev/null)'"""

SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
"""The scripts, by shell. Where nothing is offered, a shell completes file names."""


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    require_stdout()
    write_stdout(SCRIPTS[args.shell])
    return EXIT_OK


def print_completions(line: str) -> int:
    """Print what the last word of `line` may become, one completion a line. Prints nothing if that can't be found out."""
    for completion in completions(line):
        write_stdout(printable(completion))
    return EXIT_OK


def completions(line: str) -> list[str]:
    """Return what the last word of an unfinished command line may become."""
    _, *words, prefix = ["", *_split(line)]
    if not words:
        return []
    _, *words = words
    if not words and not prefix.startswith("-"):
        return [name for name in plugins.names("verb") if name.startswith(prefix)]
    verb = DEFAULT_VERB
    if words and plugins.is_known("verb", words[0]):
        verb, *words = words
    try:
        parser, _ = load_verb(verb)
    except UsageError:
        return []
    choices = {name: flag.choices for flag in parser.flags() if flag.value for name in flag.names}
    name, equals, _ = prefix.partition("=")
    if words and words[-1] in choices:
        found = choices[words[-1]]
    elif equals:
        found = tuple(f"{name}={choice}" for choice in choices.get(name, ()))
    elif prefix.startswith("-"):
        found = tuple(name for flag in parser.flags() for name in flag.names)
    else:
        found = parser.words()
    return [word for word in found if word.startswith(prefix)]


def _split(line: str) -> list[str]:
    """Split into words, as a shell would. The last one may be empty, and its quotes may be open."""
    for closing in ("", '"', "'"):
        try:
            words = shlex.split(line + closing)
        except ValueError:
            continue
        return words if words and not (closing == "" and line[-1:].isspace()) else [*words, ""]
    return [""]
