"""Tells chance from words: the last net for secrets that no name and no shape gives away.

`looks_random` judges a value that something else already made suspect; `scrub_runs` is the net itself and stricter,
because it looks at everything. Neither ever fires on hex digests, UUIDs or words joined by case, dashes or dots.
"""

from __future__ import annotations

import re
from collections.abc import Callable

RUN_LENGTH = 32
"""Characters that a run needs before the net looks at it: below, chance and identifiers are too alike."""

_SAMPLE = 64  # characters of a run that are judged for all of it

_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
_RUN = re.compile(r"[A-Za-z0-9+/_-]{32,}+={0,2}")
_DIGIT = re.compile(r"[0-9]")
_HEX = re.compile(r"(?:0x)?(?:[0-9a-f]++|[0-9A-F]++)")
_JOINTS = re.compile(r"[^A-Za-z0-9]+")
_PLAIN = re.compile(
    r"\d{0,12}(?:[A-Z]?[a-z]{3,}+\d{0,3}|[A-Z]{3,}+\d{0,3}|(?:[A-Z]?[a-z]{2,}+|[A-Z]{2,}+)(?!\d))*+"
    r"[A-Za-z]{0,2}\d{0,10}[A-Za-z]{0,2}"
)
_PAIR = re.compile(r"(?=([a-z]{2}))")
_CHANGE = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[a-z0-9])|[0-9](?=[A-Za-z])")
_DIGEST_LABELS = ("sha1:", "sha256:", "sha384:", "sha512:", "md5:", "h1:", "sha1-", "sha256-", "sha384-", "sha512-")

# The pairs of letters that make up some three quarters of English and of identifiers. In random letters one pair in
# four is among them.
_COMMON_PAIRS = frozenset(
    "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic"
    " ne ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot il tr ly nc et ut ss so rs"
    " un lo wa ge ie wh ee wi em ad ol rt po we na ul ni ts mo ow pa im mi ai sh ir su id os iv ia am fi ci vi pl ig"
    " tu ev ld ry mp fe bl ab gh ty op wo sa ay ex ke ap tt pp sp rd cr up bu ef ub ue cl ck od og ag ui ep da do sc"
    " ys rv rm nf tp".split()
)
_WORDS_SHARE = 0.45  # of the pairs: above it the letters spell words
_CHANGES_SHARE = 0.3  # of the characters: random base62 changes class at six of ten, camel case at two or three


def looks_random(value: str) -> bool:
    """Whether a suspect value of 8 characters or more is no word, number, date, UUID or chain of such."""
    value = value[:_SAMPLE]
    if len(value) < 8 or is_uuid(value) or (value[0] == "0" and _NUMBER.fullmatch(value)):
        return False
    if len(value) >= 16 and _DIGIT.search(value) and not spells_words(value):
        return True
    for part in _JOINTS.split(value):
        if len(part) >= 6 and (_PLAIN.fullmatch(part) is None or (len(part) >= 12 and not spells_words(part))):
            return True
    return False


def spells_words(text: str) -> bool:
    """Whether the letters follow each other as they do in words; also true for what has hardly any letters."""
    pairs = _PAIR.findall(text.lower())
    return len(pairs) < 4 or sum(pair in _COMMON_PAIRS for pair in pairs) >= _WORDS_SHARE * len(pairs)


def is_uuid(value: str) -> bool:
    return len(value) == 36 and _UUID.fullmatch(value) is not None


def scrub_runs(text: str, replace: Callable[[str], str]) -> str:
    """Layer 4. `replace` gets each run of 32 characters or more that only chance makes and returns what stands there.

    Such a run mixes upper case, lower case and digits, is no hex digest (nor one in base64 that says so, `sha256-…`),
    and does not spell words.
    """

    def judge(match: re.Match[str]) -> str:
        run = match[0]
        label = text[max(0, match.start() - 7) : match.start()].lower()
        if label.endswith(_DIGEST_LABELS) or run.lower().startswith(_DIGEST_LABELS):
            return run
        if "/" not in run:
            return replace(run) if _is_chance(run) else run
        parts = [replace(part) if _is_chance(part) else part for part in run.split("/")]
        joined = "/".join(parts)
        return replace(run) if joined == run and _is_chance(run) else joined

    return _RUN.sub(judge, text)


def _is_chance(run: str) -> bool:
    run = run[:_SAMPLE]
    if len(run) < RUN_LENGTH or run.islower() or run.isupper() or not _DIGIT.search(run):
        return False
    if _HEX.fullmatch(_JOINTS.sub("", run)):
        return False
    return len(_CHANGE.findall(run)) >= _CHANGES_SHARE * len(run) and not spells_words(run)
