"""`discreet completion`: prints completion scripts for shells. All of them ask `discreet --complete LINE` (`cli.completer`)."""

import argparse
from typing import Final

from ...daemon.lifecycle import EXIT_OK
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
