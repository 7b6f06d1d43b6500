"""Tells whether a value is a secret, going by its characters and by how sensitive its name is; and layer 4, random text.

Values are no secrets although their name is sensitive if they are placeholders, types, code, counters or prose. `looks_random`
rates a value that another layer suspects. `scrub_random_runs` reads all text and is stricter. Neither takes hex digests, UUIDs or
words joined by case, dashes or dots for a secret.
"""

from __future__ import annotations

import re
from typing import assert_never

from .limits import Replace, nothing_to_redact
from .sensitivity import Sensitivity, name_sensitivity

_PLAIN_WORDS = frozenset(
    "none null nil undefined true false yes no on off required optional missing invalid valid expired empty unset"
    " unknown incorrect wrong string str bytes int integer number bool boolean float any object type text char varchar"
    " password secret token key is was not and or in for from to with must should has have if else return read write"
    " admin !secret !vault".split()
)
_CONSTANTS = frozenset({"none", "null", "true", "false", "include", "omit", "same-origin"})
_PLACEHOLDER = re.compile(
    r"""\$\w{1,80}|\$?\{[^{}]{0,80}\}|\$?\{\{[^{}]{0,80}\}\}|\$\([^()]{0,80}\)|%\(\w{1,40}\)[sdr]|%[sdrv]|%\w{1,40}%
      |:[a-z_]{1,40}|<[A-Za-z][\w ./-]{0,60}>|[*xX.\u2022\u2026]{3,64}|\[[A-Z_ ]{3,40}\]""",
    re.VERBOSE,
)
_PLACEHOLDER_BEGINS = frozenset(":${%<*xX.\u2022\u2026[")
_NAME = r"[A-Za-z_]\w{0,60}"
_CALL = re.compile(rf"(?:await |new |&|\*)?{_NAME}(?:(?:\.|::|->){_NAME}){{0,8}}[(\[{{]")
_REST_OF_CALL = re.compile(r"[^)\]}\n]{0,200}")
_ATTRIBUTE = re.compile(
    r"(?:self|this|cls|os|config|cfg|conf|settings|args|opts|options|request|req|res|response|env|environ|process|ctx"
    r"|context|params|data|body|user|client|app|secrets|vault|props|state|credentials|obj|payload|session|kwargs)"
    rf"(?:\.{_NAME}){{1,6}}"
)
_TYPE = re.compile(
    r"(?:Optional|Union|List|Dict|Sequence|Secret|list|dict|tuple|set|Vec|Option|Promise|Array|Map)[\[<]"
)
_IDENTIFIER = re.compile(r"[A-Za-z_]+(?:\.[A-Za-z_]+)*")
_WORD = re.compile(r"[A-Za-z][a-z']{0,20}[.,;:!?)]?")
_PROSE_FOLLOWS = re.compile(r"\s(?:[\"'`(\[]|[A-Za-z][a-z']{0,20}(?:[\s.,;:!?]|$))")
_MIN_LONG_NUMBER = 12  # digits: no counter is that long
PASSWORD_NAMES = ("password", "passwd", "passphrase", "pwd")


def is_secret(value: str, sensitivity: Sensitivity) -> bool:
    """Whether a value is a secret, given the sensitivity of its name."""
    if len(value) < 2 or nothing_to_redact(value) or is_placeholder(value):
        return False
    rest = value
    if "{" in value or "%" in value:
        rest = _PLACEHOLDER.sub(" ", value)
        if nothing_to_redact(rest):
            return False
    match sensitivity:
        case Sensitivity.NONE:
            return False
        case Sensitivity.POSSIBLE:
            return looks_random(rest)
        case Sensitivity.PROBABLE:
            return looks_random(rest) or looks_like_password(rest)
        case Sensitivity.LIKELY:
            is_long_number = value.isdigit() and len(value) >= _MIN_LONG_NUMBER
            return looks_random(rest) or looks_like_password(rest) or is_uuid(value) or is_long_number
        case Sensitivity.CERTAIN:
            return value.lower() not in _CONSTANTS
        case _:
            assert_never(sensitivity)


def is_plain_word(value: str) -> bool:
    """Whether an unquoted value is a word that often follows a sensitive name and is never a secret."""
    return value.lower() in _PLAIN_WORDS


def is_placeholder(value: str) -> bool:
    """Whether a value stands for another one: `$TOKEN`, `${TOKEN}`, `%s`, `<token>`, `****`."""
    return value[:1] in _PLACEHOLDER_BEGINS and _PLACEHOLDER.fullmatch(value) is not None


def is_prose(text: str, at: int) -> bool:
    """Whether the text goes on with plain words rather than a value."""
    words = text[at : at + 48].split()[:3]
    return len(words) > 0 and all(map(_WORD.fullmatch, words))


def is_code(value: str, name: str, text: str, begin: int, *, separator: str, name_quoted: bool) -> bool:
    """Whether the unquoted value at `begin` is a variable, a type, a call, a counter or the first word of a sentence.

    `separator` stands between it and its name (` = `, `:`); `name_quoted` tells whether the name was quoted.
    """
    if _ATTRIBUTE.fullmatch(value) or _TYPE.match(value) or _is_call(text, begin):
        return True
    if value.isdigit() and len(value) < 8 and name.lower().endswith("s"):
        return True
    if not _IDENTIFIER.fullmatch(value):
        return False
    if name_sensitivity(value) is not Sensitivity.NONE or name_quoted:
        return True
    prose_follows = _WORD.fullmatch(value) is not None and _PROSE_FOLLOWS.match(text, begin + len(value)) is not None
    if separator.isspace():
        return value.isupper()
    if not separator.endswith(" ") or name.lower().endswith(PASSWORD_NAMES):
        return ":" in separator and prose_follows
    return not looks_random(value) and ("=" in separator or prose_follows)


def _is_call(text: str, begin: int) -> bool:
    """Whether a call, a subscript or a literal of a record begins here, which is closed on this line or goes on below."""
    call = _CALL.match(text, begin)
    rest = _REST_OF_CALL.match(text, call.end()) if call else None
    return rest is not None and (not rest[0].strip() or text[rest.end() : rest.end() + 1] in (")", "]", "}"))


# -- random text -------------------------------------------------------------------------------------------------------

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
