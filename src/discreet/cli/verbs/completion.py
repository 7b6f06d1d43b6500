"""`discreet completion`: prints completion scripts for shells, made from the parsers of all verbs.

For the operations and params of a `discreet call`, the scripts run `discreet call --complete LINE` (`call.completer`). They
run nothing else.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from ...daemon.lifecycle import EXIT_OK
from ...daemon.settings.flags import Flag
from ..commands import DEFAULT_VERB, VERBS, load_verb
from ..output import require_stdout, write_stdout

DYNAMIC_VERB: Final = "call"
"""The verb whose positional arguments a daemon completes."""


class Arguments(Struct, frozen=True):
    """The arguments of a verb. Without `words`, positional arguments complete as file names."""

    verb: str
    summary: str
    flags: tuple[Flag, ...]
    words: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The shell."""
    parser.add_argument("shell", choices=tuple(SHELLS), help="the shell that will read the script")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    require_stdout()
    write_stdout(completion_script(args.shell))
    return EXIT_OK


def completion_script(shell: str) -> str:
    """Return the completion script for one of `SHELLS`."""
    verbs = []
    for name, verb in VERBS.items():
        parser, _ = load_verb(name)
        verbs.append(Arguments(name, verb.summary, tuple(parser.flags()), parser.words()))
    return "\n".join(SHELLS[shell](verbs))


def _bash(verbs: list[Arguments]) -> Iterator[str]:
    yield from (
        "# bash completion of discreet",
        "_discreet() {",
        '    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} verb flags words="" cut=""',
        '    if [[ $word == "=" ]]; then word="" cut=1',
        '    elif [[ $previous == "=" ]]; then previous=${COMP_WORDS[COMP_CWORD-2]} cut=1; fi',
        f"    case ${{COMP_WORDS[1]}} in {_names(verbs, '|')}) verb=${{COMP_WORDS[1]}} ;; *) verb={DEFAULT_VERB} ;; esac",
        "    case $verb:$previous in",
    )
    for verb in verbs:
        for flag in verb.flags:
            if flag.value:
                pattern = "|".join(f"{verb.verb}:{name}" for name in flag.names)
                yield f"        {pattern}) {_bash_values(flag)} return ;;"
    yield from ("    esac", "    case $verb in")
    for verb in verbs:
        flags = " ".join(name for flag in verb.flags for name in flag.names)
        yield f'        {verb.verb}) flags="{flags}" words="{" ".join(verb.words)}" ;;'
    yield from (
        "    esac",
        '    if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$flags" -- "$word")); return; fi',
        f"    if [[ $verb == {DYNAMIC_VERB} ]] && (( COMP_CWORD > 1 )); then",
        "        local found",
        "        COMPREPLY=()",
        "        while IFS= read -r found; do",
        "            if [[ -n $cut ]]; then found=${found#*=}; fi",  # bash completes only what follows the "="
        '            COMPREPLY+=("$found")',
        f'        done < <("${{COMP_WORDS[0]}}" {DYNAMIC_VERB} --complete "${{COMP_LINE:0:COMP_POINT}}" 2>/dev/null)',
        "        if (( ${#COMPREPLY[@]} )); then",
        "            if [[ ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi",
        "            compopt +o filenames 2>/dev/null",
        "            return",
        "        fi",
        "    fi",
        f'    if (( COMP_CWORD == 1 )); then words="{_names(verbs, " ")}"; fi',
        '    COMPREPLY=($(compgen -W "$words" -- "$word"))',
        "    if [[ -z $words ]] || (( COMP_CWORD == 1 )); then",
        "        local IFS=$'\\n'",
        '        COMPREPLY+=($(compgen -f -- "$word"))',
        "    fi",
        "}",
        "complete -o filenames -F _discreet discreet",
    )


def _bash_values(flag: Flag) -> str:
    match flag.value:
        case "DIR":
            return "local IFS=$'\\n'; COMPREPLY=($(compgen -d -- \"$word\"));"
        case "FILE" | "APP":
            return "local IFS=$'\\n'; COMPREPLY=($(compgen -f -- \"$word\"));"
        case _ if flag.choices:
            return f'COMPREPLY=($(compgen -W "{" ".join(flag.choices)}" -- "$word"));'
        case _:
            return "COMPREPLY=();"


def _zsh(verbs: list[Arguments]) -> Iterator[str]:
    yield from (
        "#compdef discreet",
        "_discreet_call() {",
        f'    local -a found=("${{(@f)$($program {DYNAMIC_VERB} --complete "$line" 2>/dev/null)}}")',
        "    found=(${found:#})",
        "    if (( ! $#found )); then _files; return; fi",
        "    compadd -S '' -- ${(M)found:#*=}",
        "    compadd -- ${found:#*=}",
        "}",
        "_discreet() {",
        '    local program=$words[1] line="${(j: :)words[1,CURRENT-1]} $PREFIX"',
        "    local -a commands=(",
    )
    for verb in verbs:
        yield f"        {_quoted(verb.verb + ':' + verb.summary)}"
    yield from (
        "    )",
        "    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then _describe command commands; _files; return; fi",
        f"    local verb={DEFAULT_VERB}",
        f"    case $words[2] in {_names(verbs, '|')}) verb=$words[2]; shift words; (( CURRENT-- )) ;; esac",
        "    case $verb in",
    )
    for verb in verbs:
        yield f"        {verb.verb}) _arguments \\"
        yield from (f"            {_zsh_flag(name, flag)} \\" for flag in verb.flags for name in flag.names)
        positional = f"({' '.join(verb.words)})" if verb.words else _ZSH_ACTIONS.get(verb.verb, "_files")
        yield f"            {_quoted('*:argument:' + positional)} ;;"
    yield from (
        "    esac",
        "}",
        'if [[ $funcstack[1] == _discreet ]]; then _discreet "$@"; else compdef _discreet discreet; fi',
    )


_ZSH_ACTIONS: Final = {DYNAMIC_VERB: "_discreet_call"}


def _zsh_flag(name: str, flag: Flag) -> str:
    """One specification for `_arguments`; see zshcompsys(1)."""
    description = flag.help.replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
    if not flag.value:
        return _quoted(f"{name}[{description}]")
    action = {"DIR": "_directories", "FILE": "_files", "APP": "_files"}.get(
        flag.value, f"({' '.join(flag.choices)})" if flag.choices else " "
    )
    equals = "=" if name.startswith("--") else ""
    return _quoted(f"*{name}{equals}[{description}]:value:{action}")


def _fish(verbs: list[Arguments]) -> Iterator[str]:
    yield from (
        "# fish completion of discreet",
        "function __discreet_verb",
        "    set -l words (commandline -opc)",
        f'    contains -- "$words[2]" {_names(verbs, " ")}; and echo $words[2]; or echo {DEFAULT_VERB}',
        "end",
    )
    for verb in verbs:
        first = _quoted("test (count (commandline -opc)) -eq 1")
        yield f"complete -c discreet -n {first} -a {verb.verb} -d {_quoted(verb.summary)}"
    for verb in verbs:
        start = f"complete -c discreet -n {_quoted(f'test (__discreet_verb) = {verb.verb}')}"
        if verb.verb == DYNAMIC_VERB:
            yield f"{start} -a {_quoted(f'(discreet {DYNAMIC_VERB} --complete (commandline -cp) 2>/dev/null)')}"
        if verb.words:
            yield f"{start} -f -a {_quoted(' '.join(verb.words))}"
        for flag in verb.flags:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in flag.names)
            yield f"{start} {names}{_fish_values(flag)} -d {_quoted(flag.help)}"


def _fish_values(flag: Flag) -> str:
    match flag.value:
        case "":
            return ""
        case "DIR":
            return " -x -a '(__fish_complete_directories)'"
        case "FILE" | "APP":
            return " -r -F"
        case _:
            return f" -x -a {_quoted(' '.join(flag.choices))}" if flag.choices else " -x"


def _names(verbs: Iterable[Arguments], between: str) -> str:
    return between.join(verb.verb for verb in verbs)


def _quoted(text: str) -> str:
    """Quote for all three shells: in single quotes, with each single quote inside written as `'\\''`."""
    return "'" + text.replace("'", "'\\''") + "'"


_ScriptWriter: TypeAlias = Callable[[list[Arguments]], Iterator[str]]

SHELLS: Final[dict[str, _ScriptWriter]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
"""The shells, and the functions that write their scripts."""
