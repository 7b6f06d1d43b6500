"""Finds secrets that a text spells in another way: in escapes that it does not need, in hexadecimal, letter by letter.

Decodes such a part, has the other layers read it, and replaces what they would have replaced. Known secrets are not its
subject: their encodings are looked for directly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ..limits import PATH, USER, Replace
from .known_variants import decode_escapes

MIN_ENCODED_LENGTH = 24
"""Characters of the shortest word that is searched for hexadecimal and for spread characters."""
_MIN_SPREAD = 16  # characters with something between each two of them
_MIN_BYTES = 12  # in hexadecimal, one after the other
_SHORT_WORDS = 5  # characters of a word and its space: in lines with longer ones, few characters stand alone
_BEFORE = 256  # characters before an escape that are read with it: its name, the beginning of the token
_AFTER = 512  # characters after an escape

# Letters, digits, and the signs of paths and URLs, which no encoder has to escape: where a text has one of these escaped,
# it may have escaped anything. In a URL the signs may need it.
_CODES = "2[df]|3[0-9ad]|4[0-9a-f]|5[0-9acf]|6[1-9a-f]|7[0-9a]"
_NEEDLESS = re.compile(
    rf"(?i)\\u00(?:{_CODES})|\\x(?:{_CODES})|\\u\{{(?:{_CODES})\}}|%(?:2d|3[0-9]|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9a])"
    rf"|&#x0{{0,4}}(?:{_CODES});|&#0{{0,4}}(?:4[5-9]|5[0-8]|6[14-9]|[78][0-9]|9[0-57-9]|1[01][0-9]|12[0-2]);"
)
# Bytes of printable ASCII only, which random digits hardly ever are.
_HEX_RUN = re.compile(
    rf"[2-7](?<![0-9A-Za-wyz].)(?<![^0]x.)[0-9a-fA-F][ :-]?(?:[2-7][0-9a-fA-F][ :-]?){{{_MIN_BYTES - 1},}}+(?![0-9a-fA-F])"
)
_SPREAD = {
    between: re.compile(
        rf"(?<!\w)(?:[\w$+/=~.:-]{re.escape(between)}){{{_MIN_SPREAD - 1},}}+(?:[\w=](?!\w))?", re.ASCII
    )
    for between in " -."
}
"""Characters one by one, by what stands between two of them."""
_NO_HEX = re.compile(r"[ :-]")


def may_hold_encoded(line: str, words: int, long_words: list[str]) -> bool:
    """Whether `scrub_encoded` could find anything; quick. Gets the number of words, and those of `MIN_ENCODED_LENGTH`."""
    if len(line) < _SHORT_WORDS * words or "\\" in line or "%" in line or "&#" in line:
        return True
    return any(  # a list is made faster than a generator runs
        [  # noqa: C419
            _HEX_RUN.search(word) or word.count("-") >= _MIN_SPREAD - 1 or word.count(".") >= _MIN_SPREAD - 1
            for word in long_words
        ]
    )


def scrub_encoded(line: str, scrub: Callable[[str], str], replace: Replace) -> str:
    """The line without what `scrub` would remove from it if it were not encoded."""

    def run(match: re.Match[str], decode: Callable[[str], str] = _from_hex) -> str:
        decoded = decode(match[0])
        return match[0] if scrub(decoded) == decoded else replace(match[0])

    if "\\" in line or "%" in line or "&#" in line:
        line = _scrub_escaped(line, scrub, replace)
    line = _HEX_RUN.sub(run, line)
    for between, pattern in _SPREAD.items():
        if line.count(between) >= _MIN_SPREAD - 1:
            line = pattern.sub(lambda match: run(match, lambda text: text[::2]), line)
    return line


def _from_hex(run: str) -> str:
    """The text of the bytes; empty if they are no text."""
    try:
        decoded = bytes.fromhex(_NO_HEX.sub("", run)).decode("ascii")
    except ValueError:
        return ""
    return decoded if decoded.isprintable() else ""


def _scrub_escaped(line: str, scrub: Callable[[str], str], replace: Replace) -> str:
    """Decode the surroundings of each escape that is not needed, and scrub them."""
    pieces: list[str] = []
    done = 0
    for begin, end in _surroundings(line):
        pieces += line[done:begin], _scrub_decoded(line[begin:end], scrub, replace)
        done = end
    return "".join((*pieces, line[done:])) if pieces else line


def _surroundings(line: str) -> Iterator[tuple[int, int]]:
    """Where needless escapes stand, with the words around them."""
    begin = end = -1
    for found in _NEEDLESS.finditer(line):
        if found.start() < end:
            end = max(end, min(len(line), found.end() + _AFTER))
            continue
        if begin >= 0:
            yield begin, end
        begin, end = max(0, end, found.start() - _BEFORE), min(len(line), found.end() + _AFTER)
    if begin >= 0:
        yield begin, end


def _scrub_decoded(text: str, scrub: Callable[[str], str], replace: Replace) -> str:
    decoded, ends = decode_escapes(text)
    scrubbed = scrub(decoded)
    if scrubbed == decoded:
        return text
    shortest = min(len(decoded), len(scrubbed))
    first = next((at for at in range(shortest) if decoded[at] != scrubbed[at]), shortest)
    same = next((at for at in range(shortest - first) if decoded[-at - 1] != scrubbed[-at - 1]), shortest - first)
    last = len(decoded) - same
    begin = ends[first - 1] if first else 0
    end = ends[last - 1] if last else 0
    mark = scrubbed[first : len(scrubbed) - (len(decoded) - last)]
    return text[:begin] + (mark if mark in (PATH, USER) else replace(text[begin:end])) + text[end:]
