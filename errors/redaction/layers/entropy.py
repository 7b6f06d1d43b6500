"""Layer 4: redacts random-looking text that no name and no token format marks as a secret.

`looks_random` rates a value that another layer suspects. `scrub_random_runs` reads all text and is stricter. Neither takes
hex digests, UUIDs or words joined by case, dashes or dots for a secret.
"""

from __future__ import annotations

import re

from ..limits import Replace

MIN_RUN_LENGTH = 32
"""Characters of the shortest run that is checked: shorter random text and identifiers look too similar."""

_SAMPLE_LENGTH = 64  # characters at the start of a run that decide for all of it

_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
_RUN = re.compile(r"[A-Za-z0-9+/_-]{32,}+={0,2}")
_DIGIT = re.compile(r"[0-9]")
_HEX = re.compile(r"(?:0x)?(?:[0-9a-f]++|[0-9A-F]++)")
_LETTER = re.compile(r"[A-Za-z]")
_SIGN = re.compile(r"[!@#$%^&*]")
_ORDINARY = re.compile(
    r"""(?i:v?\d+(?:[.,_-]\d+)*[a-z%]{0,4}|[\d:.TZ+-]+|0x[0-9a-f]+|\d+[a-z]{1,12}|[a-z]+[-_]\d{1,4}
      |\d{1,4}[-/.](?:\d{1,2}|[a-z]{3})[-/.]\d{1,4}(?:t[\d:.z+-]+)?|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}
      |\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?:/\d+)?|[\w.-]+:\d{1,5}|[a-z][a-z0-9-]*(?:\.[a-z0-9-]+){0,5}\.[a-z]{2,12}(?::\d+)?
      |(?:sha|md|aes|rsa|hs|rs|es|ps|utf|base|ed|rfc|iso|ipv|http|oauth|python|win|tls|ssl|id|cve|ecdsa|pbkdf|argon)
       [-_]?\d[\w.-]*|[xpk]\d{2,3}[\w-]{0,4}|\S*[({\[=<>]\S*|[\w.-]+@[\w-]+(?:\.[\w-]+)+)|[a-z_.-]+\d|[A-Z]?[a-z]+\d|[A-Z_]+\d""",
    re.VERBOSE,
)
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
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
_MIN_COMMON_PAIRS = 0.45  # of the pairs: from this share on, the letters spell words
_MIN_CHANGES = 0.3  # of the characters: random base62 changes class at six of ten, camel case at two or three


def looks_random(value: str) -> bool:
    """Whether a value has 8 characters or more and is no word, number, date, UUID or sequence of such."""
    value = value[:_SAMPLE_LENGTH]
    if len(value) < 8 or is_uuid(value) or (value[0] == "0" and _NUMBER.fullmatch(value)):
        return False
    if len(value) >= 16 and _DIGIT.search(value) and not looks_like_words(value):
        return True
    for part in _SEPARATORS.split(value):
        if len(part) >= 6 and (_PLAIN.fullmatch(part) is None or (len(part) >= 12 and not looks_like_words(part))):
            return True
    return False


def looks_like_password(value: str) -> bool:
    """Whether a value of 6 characters or more mixes letters with digits or signs, as people's passwords do.

    Versions, dates, quantities, addresses, names of algorithms and words with one digit (`worker1`) do not.
    """
    value = value[:_SAMPLE_LENGTH]
    if len(value) < 6 or not _LETTER.search(value) or _ORDINARY.fullmatch(value):
        return False
    return _DIGIT.search(value) is not None or (_SIGN.search(value) is not None and looks_random(value))


def looks_like_words(text: str) -> bool:
    """Whether pairs of letters are as common as in words. True for a text with few letters."""
    pairs = _PAIR.findall(text.lower())
    return len(pairs) < 4 or sum(pair in _COMMON_PAIRS for pair in pairs) >= _MIN_COMMON_PAIRS * len(pairs)


def is_uuid(value: str) -> bool:
    return len(value) == 36 and _UUID.fullmatch(value) is not None


def scrub_random_runs(text: str, replace: Replace) -> str:
    """Replace each random run of 32 characters or more.

    Such a run mixes upper case, lower case and digits, spells no words, and is neither a hex digest nor a base64 digest
    with a label (`sha256-…`).
    """

    def replacement(match: re.Match[str]) -> str:
        run = match[0]
        label = text[max(0, match.start() - 7) : match.start()].lower()
        if label.endswith(_DIGEST_LABELS) or run.lower().startswith(_DIGEST_LABELS):
            return run
        if "/" not in run:
            return replace(run) if _is_random(run) else run
        parts = [replace(part) if _is_random(part) else part for part in run.split("/")]
        joined = "/".join(parts)
        return replace(run) if joined == run and _is_random(run) else joined

    return _RUN.sub(replacement, text)


def _is_random(run: str) -> bool:
    run = run[:_SAMPLE_LENGTH]
    if len(run) < MIN_RUN_LENGTH or run.islower() or run.isupper() or not _DIGIT.search(run):
        return False
    if _HEX.fullmatch(_SEPARATORS.sub("", run)):
        return False
    return len(_CHANGE.findall(run)) >= _MIN_CHANGES * len(run) and not looks_like_words(run)
