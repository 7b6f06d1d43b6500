"""Layer 2: redacts the values of sensitive names, in any notation. Never reads the same part of a text twice.

`key=value`, `"key": "value"` (also escaped inside another string, also in Python's, Ruby's and Perl's notation),
YAML, XML elements, headers, command-line flags, URL queries, pairs of `name` and `value`, calls. `sensitivity` rates the
name, the second half of this module finds where the value ends, and `secret_values` tells which values are no secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from .limits import ANY_MARK, REDACTED, WorkBudget, nothing_to_redact, splice
from .secret_values import PASSWORD_NAMES, is_code, is_placeholder, is_plain_word, is_prose, is_secret
from .sensitivity import SENSITIVE_STEMS, Sensitivity, name_sensitivity
from .token_formats import trie_pattern

Span = tuple[int, int]

_NAME_LENGTH = 64  # characters of a name before and after its sensitive stem
_NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789_.-"
_ANY_STEM = trie_pattern(SENSITIVE_STEMS)
_ATTRIBUTE = r"""\s{1,4}(?!value|name|key)[\w:.\-]{1,64}\s{0,2}=\s{0,2}(?:"[^"\n<>]{0,128}"|'[^'\n<>]{0,128}')"""
_ATTRIBUTES = rf"(?:{_ATTRIBUTE}){{0,6}}+\s{{0,2}}"
_TYPE_NAMES = r"(?:string|str|&str|bytes|secretstr|text|varchar|char|nsstring|bytestring|optional|any)"

# A sensitive stem, the rest of its name, and what joins the name to a value. Runs over lower-cased text. The name of the
# group that matched tells how they are joined.
_TEMPLATE = rf"""
    (?:{_ANY_STEM})(?P<rest>[a-z0-9_.\-]{{0,{_NAME_LENGTH}}}+)
    (?P<close>\\{{0,8}}+["'`]|%22)?+ (?:\]|%5d)?+ (?:\x1b\[[0-9;]{{0,8}}m)?+
    (?:
      (?P<pair>\s{{0,4}}[,;]?\s{{0,4}}\\{{0,8}}["']?value\\{{0,8}}["']?\s{{0,4}}[:=]\s{{0,4}})
    | (?P<assign>(?:\s{{0,2}}:?\s{{0,4}}{_TYPE_NAMES}\b[\w\[\]?]{{0,12}})?\s{{0,8}}
        (?:=>|->|:{{1,3}}=|\?\?=|\|\|=|[?+.|!]=|={{1,3}}|%3d)\s{{0,8}})
    | (?P<colon>(?:\s{{0,4}}(?::|%3a)\s{{0,8}}|\ ::\ )(?:%22)?)
    | (?P<element>{_ATTRIBUTES}(?:>|&gt;)\s{{0,8}})
    | (?P<plist></key>\s{{0,8}}<string>)
    | (?P<comma>\s{{0,2}},\s{{0,4}}(?=[bru]?\\{{0,8}}["'`])|,(?=[\w+/=.:-]{{10}}))
    | (?P<cell>[`"]?[\ \t]{{0,32}}[|│][\ \t]{{0,32}}`?|[;,](?=[^\s,;"'`]))
    | (?P<call>\(\s{{0,2}}(?=[bru]?\\{{0,8}}["'`]))
    | (?P<verb>(?:\ (?:for|of)\ (?:the\ )?(?:user\ |account\ |role\ )?["'`]?[\w.@\-]{{1,40}}["'`]?)?
        (?:\ (?:has\ |have\ |was\ |is\ |been\ ){{0,2}}(?:set|changed|reset|updated|rotated))?
        \ (?:is|was|to|from|ist|-)(?:\ now|\ still)?(?::|\ =)?\ (?=["'`]|\S{{0,32}}?\d))
    | (?P<space>[\ \t]{{1,4}}SPACE)
    )"""
# Two words side by side are seldom a name and its value: the second needs a quote or a digit, except after a flag.
_JOINED_NAME = re.compile(_TEMPLATE.replace("SPACE", r"(?=[\"'`]|\S{0,32}?\d)"), re.VERBOSE)
_NAME_OR_FLAG = re.compile(_TEMPLATE.replace("SPACE", r"(?=[^\s-])"), re.VERBOSE)
# The same for a value on the next line: YAML block scalars, XML, wrapped assignments.
_NAME_ABOVE = re.compile(
    rf"""
    (?:{_ANY_STEM})(?P<rest>[a-z0-9_.\-]{{0,{_NAME_LENGTH}}}+) (?P<close>["'])?+
    (?: (?P<assign>[ \t]{{0,4}}(?::|[:?+]?=|=>)[ \t]{{0,4}}\\?\r?\n[ \t]{{1,32}}(?=["'`]))
      | (?P<colon>[ \t]{{0,4}}:[ \t]{{0,4}}[|>][-+]?[0-9]?[ \t]{{0,4}}\r?\n[ \t]{{1,32}})
      | (?P<pair>[ \t]{{0,4}},?\r?\n[ \t]{{1,32}}["']?value["']?[ \t]{{0,4}}[:=][ \t]{{0,8}})
      | (?P<element>{_ATTRIBUTES}>[ \t]{{0,4}}\r?\n[ \t]{{0,32}})
      | (?P<plist></key>[ \t]{{0,4}}\r?\n[ \t]{{0,32}}<string>)
      | (?P<nested>[ \t]{{0,4}}(?::|=>|[:+?]?=)[ \t]{{0,4}}(?=[\[({{][ \t\[({{]{{0,32}}\r?\n))
      | (?P<concatenation>[ \t]{{0,4}}(?::|=>|[:+?]?=)[ \t]{{0,4}}(?=[bruf]{{0,2}}(?:"[^"\n]{{0,256}}+"|'[^'\n]{{0,256}}+')
          [ \t]{{0,4}}(?:[+.&~|\\]|\r?\n[ \t]{{1,32}}[+.&~|])))
      | (?P<block>[ \t]{{0,4}}[:=][ \t]{{0,4}}(?:\"\"\"|\'\'\')\r?\n)
      | (?P<folded>[ \t]{{0,4}}:[ \t]{{0,4}}(?:(?:bearer|basic|token)[ \t]{{0,4}})?\r?\n[ \t]{{1,32}}
          (?:(?:bearer|basic|token|bot)[ \t]{{1,4}})?(?=[^\s:"'{{\[]{{6,512}}(?:[;,][^\n]{{0,256}})?\r?(?:\n|\Z)))
      )
    """,
    re.VERBOSE,
)
_LINE_END = re.compile(r"\n(?:(?=[ \t])|(?<=[\"'>]\n)|(?<=[\"'>]\r\n))")
_OPEN_ENDS = (*":=>|\\+-\"'0123456789[({.&~", "bearer", "basic", "token")
_VALUE_BELOW = re.compile(r"[ \t]{1,32}[\"']?value")
_FLAG = re.compile(r"-(?<![\w.]-)[a-z\-]")
_HEADER_NAME = re.compile(r"(?:[a-z]+[-_])*(?:authorization|cookie2?)")
_TUPLE = re.compile(r"(?<!\w)[(\[]\s?[bru]?[\"'`]$")
_FLAGS = frozenset({"--pass", "--pw", "--userpass", "--auth"})
"""Flags whose value is a secret, although their name is that of other values elsewhere."""
_PHRASES = ("mnemonic", "seedphrase", "seed_phrase", "seed-phrase", "recovery_phrase", "secret_phrase")
_TAG = re.compile(r"<(?:[\w.-]{1,32}:)?$|&lt;(?:[\w.-]{1,32}:)?$|<[\w.:-]{1,32} {1,4}(?:name|key|id)\s?=\s?[\"']$")
_MOVE = re.compile(r" (?:to|from)(?: now| still)?(?::| =)? $")
_QUOTED_FLAG = re.compile(r"[\"'`]-")
_CHANGE = re.compile(r"(?i)\b(?:set|chang|reset|updat|rotat)")
_COUNT = re.compile(r"\d $")
_KEY_OWNERS = frozenset(
    "api access secret private encryption decryption signing master account license licence ssh security session"
    " shared deploy webhook app service storage consumer client recovery auth ssl seed".split()
)
"""Words that belong to a following `key` although white space parts them: `API key: …`."""

_FOLDED_COOKIE = re.compile(r"(?i)(cookie2?:[^\r\n]{0,4096}+\r?\n[ \t]{1,32})([^\s<][^\r\n]{0,4096}+)")
_CRUMB = re.compile(r"[\w.-]{1,64}=[^\s;]")

_USER_KEY = re.compile(r"(?i)[\"'](?:user(?:[-_]?name)?|login|account|e?mail)\\{0,8}[\"']\s{0,4}(?::|=>)")
_COMPOUND_NAME = re.compile(r"[a-z][A-Z_.-]|[A-Z][_.-]")
_ASSIGNMENTS = frozenset({"assign", "colon", "concatenation"})
_OPENING_BRACKETS = frozenset("[({")
_OPENING_BEGINS = frozenset("\"'`\\bBrRuUfF@$&")


def scrub_named_values(text: str, low: str, work: WorkBudget) -> str:
    """Run layer 2 over one line. `low` is the line in lower case, of the same length."""
    pattern = _NAME_OR_FLAG if "-" in text and _FLAG.search(low) else _JOINED_NAME
    return _scrub(pattern.finditer(low), text, low, work)


def scrub_values_below(text: str, low: str, work: WorkBudget) -> str:
    """Scrub values on the line below their name, over many lines."""
    return _scrub(_names_above(low), text, low, work)


def _names_above(low: str) -> Iterator[re.Match[str]]:
    """The names from which the value goes on in the line below: only lines with an open end are read."""
    done = 0
    for line_end in _LINE_END.finditer(low):
        at = line_end.start()
        if not low[max(0, at - 12) : at].rstrip().endswith(_OPEN_ENDS) and not _VALUE_BELOW.match(low, at + 1):
            continue
        below = low.find("\n", at + 1) + 1 or len(low)
        end = low.find("\n", below) + 1 or len(low)
        for found in _NAME_ABOVE.finditer(low, max(done, low.rfind("\n", 0, at) + 1), end):
            done = found.end()
            yield found


def scrub_folded_cookies(text: str, work: WorkBudget) -> str:
    """The text without the cookies of a header that goes on below (RFC 9112, section 5.2)."""
    if "ookie" not in text and "OOKIE" not in text:
        return text
    return _FOLDED_COOKIE.sub(
        lambda match: match[1] + work.replace(match[2]) if _CRUMB.search(match[2]) else match[0], text
    )


def redact_by_name(name: str, value: str) -> str | None:
    """The mark if `value` is a secret under the key `name` of a mapping, else None."""
    match name_sensitivity(name):
        case Sensitivity.CERTAIN:
            return None if nothing_to_redact(value) else REDACTED
        case sensitivity:
            return REDACTED if is_secret(value, sensitivity) else None


def _scrub(matches: Iterable[re.Match[str]], text: str, low: str, work: WorkBudget) -> str:
    return splice(text, _replacements(matches, text, low, work))


def _replacements(
    matches: Iterable[re.Match[str]], text: str, low: str, work: WorkBudget
) -> Iterator[tuple[int, int, str]]:
    done = read = 0
    for match in matches:
        if match.start() < max(done, read):
            continue
        start = _name_start(low, match.start())
        name = _name(text, start, match)
        sensitivity = Sensitivity.CERTAIN if name.lower() in _FLAGS else name_sensitivity(name)
        if sensitivity is Sensitivity.NONE:
            continue
        work.step()
        spans, read = _values(text, start, match, name, sensitivity)
        for span in spans:
            if span[0] >= done:
                yield *span, work.replace(text[slice(*span)], name)
                done = span[1]


def _name_start(low: str, stem: int) -> int:
    head = low[max(0, stem - _NAME_LENGTH) : stem]
    return stem - len(head) + len(head.rstrip(_NAME_CHARACTERS))


def _name(text: str, start: int, match: re.Match[str]) -> str:
    """The name to rate, with the word before it if it is only `key` or `phrase`."""
    name = text[start : match.end("rest")]
    if name.lower() in ("key", "keys", "phrase") and start and text[start - 1] == " ":
        before = text[max(0, start - 24) : start - 1].rpartition(" ")[2]
        if before.lower() in _KEY_OWNERS:
            return f"{before}_{name}"
    return name


def _values(text: str, start: int, match: re.Match[str], name: str, sensitivity: Sensitivity) -> tuple[list[Span], int]:
    """The spans of the secrets that belong to a name, and up to where the text was read."""
    at = match.end()
    first = text[at : at + 1]
    opened = OPENING_QUOTE.match(text, at) if first in _OPENING_BEGINS else None
    limit = _sensitivity_limit(text, start, match, name, value_quoted=opened is not None)
    if name.lower() == "pass" and _USER_KEY.search(text, max(0, start - 96), at + 160):
        sensitivity = Sensitivity.CERTAIN
    sensitivity = min(sensitivity, limit)
    if sensitivity is Sensitivity.NONE:
        return [], 0
    if opened is not None and match.lastgroup != "block":
        return quoted_spans(text, opened, sensitivity, joined=match.lastgroup in _ASSIGNMENTS), 0
    if first in _OPENING_BRACKETS and sensitivity is Sensitivity.CERTAIN and NESTED_START.match(text, at):
        return nested_spans(text, at, name, Sensitivity.CERTAIN)
    if sensitivity is Sensitivity.CERTAIN and (call := CONSTRUCTOR.match(text, at)):
        return nested_spans(text, call.end() - 1, name, Sensitivity.LIKELY)
    span = _value(text, start, match, name, sensitivity)
    return [] if span is None else [span], 0


def _value(text: str, start: int, match: re.Match[str], name: str, sensitivity: Sensitivity) -> Span | None:
    """The span of a value that is neither quoted nor nested."""
    at = match.end()
    first = text[at : at + 1]
    if match.lastgroup == "block":
        return block_span(text, at, sensitivity)
    if match.lastgroup == "element" and (span := element_span(text, at)):
        return span if is_secret(text[slice(*span)], sensitivity) else None
    if match.lastgroup == "colon" and _HEADER_NAME.fullmatch(name.lower()):
        return header_span(text, at, name)
    if name.lower().endswith(_PHRASES) and sensitivity is Sensitivity.CERTAIN:
        return phrase_span(text, at)
    separator = match[match.lastgroup or 0]
    if match.lastgroup in ("assign", "colon") and sensitivity is Sensitivity.CERTAIN:
        if first == "[" and (span := bare_list_span(text, at)):
            return span
        is_setting = "=" in separator and _COMPOUND_NAME.search(name) is not None
        if (is_setting or name.lower().endswith(PASSWORD_NAMES)) and (
            span := phrase_value_span(text, start, at, separator)
        ):
            return span
    if match.lastgroup == "cell" and (span := cell_span(text, at, name, separator)):
        return span
    return bare_span(text, at, name, sensitivity, separator=separator, name_quoted=match["close"] is not None)


def _sensitivity_limit(text: str, start: int, match: re.Match[str], name: str, *, value_quoted: bool) -> Sensitivity:
    """The most that a value's sensitivity can be, given what joins it to its name."""
    side_by_side = Sensitivity.LIKELY if name_sensitivity(name) is Sensitivity.CERTAIN else Sensitivity.NONE
    match match.lastgroup:
        case "assign":
            is_comparison = "==" in match["assign"] or "!=" in match["assign"]
            return Sensitivity.LIKELY if is_comparison else Sensitivity.CERTAIN
        case "colon":
            return _limit_after_colon(text, start)
        case "pair" | "plist" | "block" | "nested" | "concatenation":
            return Sensitivity.CERTAIN
        case "folded":
            return Sensitivity.LIKELY
        case "element":
            return Sensitivity.CERTAIN if _TAG.search(text, max(0, start - 40), start) else Sensitivity.NONE
        case "comma":
            is_flag = (
                name.startswith("-") and match["close"] in ("'", '"') and not _QUOTED_FLAG.match(text, match.end())
            )
            is_pair = value_quoted and match["close"] and _TUPLE.search(text, max(0, start - 4), start)
            return Sensitivity.CERTAIN if is_flag or is_pair else side_by_side
        case "space":
            return _limit_after_space(text, start, match, name, value_quoted=value_quoted)
        case "verb":
            is_given = True
            if _MOVE.search(match["verb"]):  # `sent the password to bob` is no assignment
                is_given = _CHANGE.search(text[max(0, start - 24) : match.end()]) is not None
            elif "-" in match["verb"]:  # `token - 1` is a difference
                is_given = name.lower().endswith(PASSWORD_NAMES)
            return min(side_by_side, Sensitivity.PROBABLE) if is_given else Sensitivity.NONE
        case _:
            return side_by_side


def _limit_after_colon(text: str, start: int) -> Sensitivity:
    """`/etc/passwd:12` is a line of a file, `12 tokens: …` a count, `/password:x` a switch, as on Windows."""
    if text[start - 1 : start] == "/":
        return Sensitivity.LIKELY if text[max(0, start - 2) : start - 1].isspace() else Sensitivity.POSSIBLE
    return Sensitivity.POSSIBLE if _COUNT.search(text, max(0, start - 4), start) else Sensitivity.CERTAIN


def _limit_after_space(text: str, start: int, match: re.Match[str], name: str, *, value_quoted: bool) -> Sensitivity:
    if name.startswith("-") and (start == 0 or text[start - 1] in " \t\"'`,[=("):
        return Sensitivity.CERTAIN
    if match["close"] is not None or name_sensitivity(name) is not Sensitivity.CERTAIN:
        return Sensitivity.NONE  # the quoted text before this is more than a name
    is_password = value_quoted and name.lower().endswith(("password", "passwd", "passphrase"))
    return Sensitivity.CERTAIN if is_password else Sensitivity.PROBABLE


# -- where values begin and end ----------------------------------------------------------------------------------------
#
# Each function returns the span of the secret, or None if there is no secret. A secret is never read twice, and of other
# values only a bounded length is read, so that the work is linear in the text.

_STEM = re.compile("|".join(map(re.escape, SENSITIVE_STEMS)))

OPENING_QUOTE = re.compile(r"(?:[bBrRuUfF@$&]{1,2}(?=[\"'`\\]))?(\\{0,8}+)([\"'`])")
"""An opening quote with its escapes (group 1) and its kind (group 2)."""

_LITERAL = r"[bBrRuUfF]{0,2}\\{0,8}[\"'`]"
_KEY_SIGN = r"\s{0,8}(?:=>|->|[:=](?!=))\s{0,8}"
NESTED_START = re.compile(
    rf"(?:[\[(]\s{{0,64}}+){{0,8}}+(?:(?<=[\[(\s])(?={_LITERAL})|\{{\s{{0,64}}+(?={_LITERAL}|[\w.$-]{{1,64}}{_KEY_SIGN}))"
)
"""The beginning of a list or a tuple of quoted texts, or of a mapping; also of one in another."""

CONSTRUCTOR = re.compile(
    rf"(?:\w{{1,40}}(?:\.|::)){{0,4}}[A-Z]\w{{0,40}}\((?=\s{{0,4}}(?:\w{{1,40}}\s?=\s?)?{_LITERAL})"
)
"""The beginning of a value that a constructor wraps: `Some("…")`, `Secret(value="…")`."""

_NESTED = re.compile(
    rf"""(?P<open>[\[({{]) | (?P<close>[\])}}]) | (?P<literal>{_LITERAL}) | (?P<bare>[^\s,;:="'`\[\](){{}}\\]+)""",
    re.VERBOSE,
)
_AFTER_KEY = re.compile(_KEY_SIGN)
_BARE_LEAF = re.compile(r"[^\s,;\"'`\[\](){}]+")
_MAX_DEPTH = 32  # brackets within brackets
_MAX_NESTED = 16_384  # characters of a nested value: more may be a bracket that nothing closes
_JOIN = re.compile(
    r"[ \t]{0,8}(?:(?:\+|\.{1,2}|\|\||&|~)[ \t]{0,8}(?:\\?\r?\n[ \t]{0,64})?|\\\r?\n[ \t]{0,64}"
    r"|\r?\n[ \t]{0,64}(?:\+|\.{1,2}|\|\||&|~)[ \t]{0,8})?"
)
"""The join of two literals in a language: an operator, or nothing at all, also over the end of a line."""
_QUOTED = {quote: re.compile(rf"(?:[^{quote}\\\n]|\\.|{quote}{quote})*+") for quote in "\"'`"}
_PLAIN = r"[^\s\"'`<>,;&\\)\]}|]"
_PART = rf"""
    (?: {ANY_MARK}
      | <[A-Za-z][\w./-]{{0,60}}> | \$?\{{[^{{}}\s"']{{0,80}}\}} | \[[A-Z_]{{3,40}}\]
      | {_PLAIN}PLAIN
      | [<>"'`)\]}}|](?={_PLAIN})
      | [,;](?!\s|["'`]|$|[\w.\-]{{1,40}}[=:])
      | &(?!(?:amp;)?[\w.\-\[\]%]{{1,60}}=|[\s&]|$)
      | \\(?![\\"'`nrtu\s]|$) | \\u(?!00(?:2[027]|60|0[ad]))[0-9a-fA-F]{{4}}
    )"""
_BEGIN = re.compile(_PART.replace("PLAIN", "{1,64}+") + "{0,3}+", re.VERBOSE)
_BARE = re.compile(_PART.replace("PLAIN", "++") + "*+", re.VERBOSE)
_SCHEME_BEGINS = frozenset("bBtTaAjJnN")
_HEADER = re.compile(r"(?:[^\"'`\r\n\\]|[\"'`](?=[\w=;%]))*+")
_CDATA = re.compile(r"<!\[CDATA\[(?P<s>[^\]\n]{1,4096}+)")
_ELEMENT = re.compile(r"(?P<s>[^<\n]{1,4096}+)(?=</)")
_BLOCK = re.compile(r"(?P<s>(?:(?!\"{3}|'{3}).){1,4096}+)", re.DOTALL)
_BEFORE_NAME = re.compile(r"[ \t]*(?:[-*] |export |set )?")
_TO_LINE_END = re.compile(r"(?:[^\r\n#;]|[#;](?![ \t])|(?<![ \t])[#;])+")
_PART_OF_CONNECTION = re.compile(r"[^;\r\n\"'`]{1,256}")
_SENTENCE = re.compile(
    r"(?i)(?<![\w-])(?:the|an?|is|was|are|were|be|been|for|from|of|to|in|on|at|by|as|with|not|no|and|or|if|else|has|have"
    r"|had|must|should|will|can|may|than|too|it|this|that|you|your|user|field|characters?|length|reset|changed|required"
    r"|optional|invalid|missing|failed|accepted|rejected|expired|sent|link|minimum|maximum|least|most|string|default"
    r"|null|none|true|false|after|before|when|while|error|warning|hash|hashed|policy|prompt|attempts?|login|update[ds]?)"
    r"(?![\w-])"
)
_CODE = re.compile(
    r"[\w.\]]\(|[,;&]\s?[\w.-]{1,40}\s?[=:]|\s[\w.-]{1,40}[=:](?:\s|[\w\"'])|=>|->|[{}]| [+|?:] |\\n|\""
    rf"|{ANY_MARK}"
)
_UNUSUAL = re.compile(r"[0-9!#$%&*@^~]")
_BRACED = re.compile(r"\{(?P<s>[^{}\n<]{1,256}(?:\}\}[^{}\n]{0,128}){0,4})\}(?=[;\"']|$)")  # ODBC
_FORMAT_FIELD = re.compile(r"[A-Za-z_][\w.]{0,80}(?:![rsa])?(?::[\w.<>^]{0,8})?")  # of a Python format string
_BARE_LIST = re.compile(r"\[(?P<s>[^\[\]\n\"'`<]{1,1024})\]")
_CELL = re.compile(r"[^\s|│<](?:(?! -)[^|│\n<`()]){0,256}[^\s|│<`()](?=\s{0,64}(?:[|│]|$))")
_SCRUBBED = re.compile(rf"(?:{ANY_MARK})++(?:[\"'`\\]|\Z)")
_MAPPING = re.compile(r"\{\s{0,8}(?:\\{0,8}[\"'`]|\}|:\w)")
_SCHEME = re.compile(r"(?:bearer|basic|token|apikey|api-key|jwt|negotiate|ntlm)\s{1,4}", re.IGNORECASE)
_NOT_A_VALUE = re.compile(r"[-(\[{<]|[\w.-]{1,64}=\w")  # after a name and white space: a flag, a remark, another name
_SIGNED_SCHEME = re.compile(r"(?:digest|aws4-hmac-sha256|oauth|hawk|signature)\s", re.IGNORECASE)  # layer 3 finds these
_NAME = re.compile(r"[A-Za-z][A-Za-z_.-]{1,63}")
_YAML_TAG = re.compile(r"(?:!!\w{1,16}|&[A-Za-z]\w{0,31}) {1,4}(?=\S)")
_COMPOUND = re.compile(r"[A-Za-z]\w*[_.-]")
_MIN_SETTING = 8  # characters of a word that is a secret because nothing else is on its line
_TRAILING = ".,;:!?)]}"


def quoted_spans(text: str, opened: re.Match[str], sensitivity: Sensitivity, *, joined: bool) -> list[Span]:
    """A quoted value, and with `joined` the literals that the text joins to it (`'a' + 'b'`)."""
    span = _quoted(text, opened)
    if not _is_redacted(text, span):
        if (first := _quoted_secret(text, span, sensitivity)) is None:
            return []
        spans = [first]
    else:
        spans = []
    while joined and text[span[1] : span[1] + 1] not in ("", "\n"):
        join = _JOIN.match(text, span[1] + len(opened[1] or "") + 1)
        following = OPENING_QUOTE.match(text, join.end()) if join else None
        if following is None:
            break
        opened = following
        span = _quoted(text, opened)
        if not nothing_to_redact(text[slice(*span)]):
            spans.append(span)
    return spans


def _quoted(text: str, opened: re.Match[str]) -> Span:
    """The inside of the quotes: up to the same quote with the same escapes; without one, to the end of the line."""
    start = opened.end()
    if opened[1]:
        closing = _closing(opened[1] + opened[2]).search(text, start)
        return start, closing.start() if closing else _line_end(text, start)
    match = _QUOTED[opened[2]].match(text, start)
    return start, match.end() if match else start


def _is_redacted(text: str, span: Span) -> bool:
    return text[span[0]] == "<" and _SCRUBBED.match(text, *span) is not None if span[0] < span[1] else False


def _quoted_secret(text: str, span: Span, sensitivity: Sensitivity) -> Span | None:
    start, end = span
    value = text[start:end]
    is_closed = end < len(text) and text[end] != "\n"
    if not is_closed and nothing_to_redact(value):
        return None  # the quote closes something else
    scheme = _SCHEME.match(value)
    if scheme and scheme.end() < len(value):
        start, value = start + scheme.end(), value[scheme.end() :]
    if (
        sensitivity is Sensitivity.POSSIBLE
        and _NAME.fullmatch(value)
        and name_sensitivity(value) is not Sensitivity.NONE
    ):
        return None  # `key="dbPassword"`: the name of another value
    return (start, end) if is_secret(value, sensitivity) else None


def nested_spans(text: str, at: int, name: str, literals: Sensitivity) -> tuple[list[Span], int]:
    """The secrets in the list or mapping that begins at `at`, under a name that is always redacted, and where it ends.

    `literals` is the sensitivity of quoted texts, except where their own key describes a secret (`"type": "string"`). Such
    texts, and what stands without quotes, must look like a secret.
    """
    spans: list[Span] = []
    names = [name]  # of the containers that are open, the key of the next value last
    end = min(len(text), at + _MAX_NESTED)
    while at < end and (found := _NESTED.search(text, at, end)) is not None:
        at = found.end()
        match found.lastgroup:
            case "open":
                if len(names) > _MAX_DEPTH:  # what is deeper is removed unread
                    return [*spans, (at, end)] if not nothing_to_redact(text[at:end]) else spans, end
                names.append(names[-1])
            case "close":
                names.pop()
                if len(names) == 1:
                    return spans, at
                names[-1] = names[-2]
            case kind:
                is_literal = kind == "literal"
                opened = OPENING_QUOTE.match(text, found.start()) if is_literal else None
                span = _quoted(text, opened) if opened else found.span()
                at = span[1] + (len(opened[1] or "") + 1 if opened else 0)
                if sign := _AFTER_KEY.match(text, at):
                    names[-1] = _joined_name(names[-2], text[slice(*span)])
                    at = sign.end()
                    if (leaf := _BARE_LEAF.match(text, at)) and not OPENING_QUOTE.match(text, at):
                        span, at, is_literal = leaf.span(), leaf.end(), False
                    else:
                        continue
                if _is_leaf_secret(text[slice(*span)], names[-1], literals if is_literal else Sensitivity.LIKELY):
                    spans.append(span)
                names[-1] = names[-2]
    return spans, max(at, end)


def _joined_name(owner: str, key: str) -> str:
    """The name of a value in a mapping: that of the mapping, unless the key is a name that is always redacted."""
    return key if name_sensitivity(key) is Sensitivity.CERTAIN else f"{owner[-64:]}_{key[:64]}"


def _is_leaf_secret(value: str, name: str, sensitivity: Sensitivity) -> bool:
    if name_sensitivity(name) is Sensitivity.NONE or name.lower().endswith("tokens"):
        sensitivity = Sensitivity.LIKELY
    return is_secret(value, sensitivity) or ("=" in value and _STEM.search(value.lower()) is not None)


def element_span(text: str, at: int) -> Span | None:
    """The text of an XML element, or of its CDATA, up to its closing tag; None without one nearby or without text."""
    match = _CDATA.match(text, at) or _ELEMENT.match(text, at)
    return match.span("s") if match else None


def block_span(text: str, at: int, sensitivity: Sensitivity) -> Span | None:
    """A text in three quotes, which have been opened before `at`; without an end, all of the next characters."""
    match = _BLOCK.match(text, at)
    return match.span("s") if match and is_secret(match["s"].strip(), sensitivity) else None


def is_passphrase(value: str, name: str) -> bool:
    """Whether a value of two to eight words has a digit or a rare sign, and none of the words that make up sentences.

    Under the name of a password four plain words suffice.
    """
    words = value.split()
    if not 2 <= len(words) <= 8 or _SENTENCE.search(value):
        return False
    return _UNUSUAL.search(value) is not None or (len(words) >= 4 and name.lower().endswith(PASSWORD_NAMES))


def phrase_value_span(text: str, start: int, at: int, separator: str) -> Span | None:
    """A password of several words, to the end of its line or of its part of a connection string; None for other values.

    Its name, from `start` on, must be the first on the line. A sentence or code after the name is no password.
    """
    line_start = text.rfind("\n", 0, start) + 1
    if "=" in separator and (braced := _BRACED.match(text, at)) and text[start - 1 : start] in (";", '"', "'"):
        is_field = _FORMAT_FIELD.fullmatch(braced["s"]) and not is_secret(braced["s"], Sensitivity.PROBABLE)
        return None if is_field else braced.span("s")
    if text[start - 1 : start] == ";" and "=" in separator:
        match = _PART_OF_CONNECTION.match(text, at)
    elif _BEFORE_NAME.fullmatch(text, line_start, start):
        match = _TO_LINE_END.match(text, at)
    else:
        return None
    value = match[0].rstrip() if match else ""
    words = value.split()
    if len(words) < 2 or value[0] in "\"'`<[{(" or _SENTENCE.search(value) or _CODE.search(value):
        return None
    is_phrase = _UNUSUAL.search(value) is not None or ("=" in separator or len(words) > 2)
    return (at, at + len(value)) if is_phrase and is_secret(value, Sensitivity.CERTAIN) else None


def bare_list_span(text: str, at: int) -> Span | None:
    """The items of a list without quotes, if one of them looks like a secret."""
    match = _BARE_LIST.match(text, at)
    if match is None or not any(is_secret(item.strip(), Sensitivity.LIKELY) for item in match["s"].split(",")):
        return None
    return match.span("s")


def cell_span(text: str, at: int, name: str, separator: str) -> Span | None:
    """The rest of a table's cell of several words."""
    match = _CELL.match(text, at) if "|" in separator or "│" in separator else None
    return match.span() if match and is_passphrase(match[0], name) else None


def phrase_span(text: str, at: int) -> Span | None:
    """The words of a mnemonic phrase: to the end of the line."""
    match = _HEADER.match(text, at)
    return match.span() if match and is_secret(match[0], Sensitivity.CERTAIN) else None


@lru_cache(maxsize=32)
def _closing(delimiter: str) -> re.Pattern[str]:
    return re.compile(r"(?<!\\)" + re.escape(delimiter))


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def bare_span(
    text: str, at: int, name: str, sensitivity: Sensitivity, *, separator: str, name_quoted: bool
) -> Span | None:
    """An unquoted value: up to white space, a closing quote or bracket, or the next name."""
    first = text[at : at + 1]
    if (first == "{" and _MAPPING.match(text, at)) or text.startswith("</", at):  # a mapping: its own names decide
        return None
    if first in ("!", "&") and (tag := _YAML_TAG.match(text, at)):
        at = tag.end()
        first = text[at : at + 1]
    scheme = _SCHEME.match(text, at) if first in _SCHEME_BEGINS else None
    begin = scheme.end() if scheme else at
    match = _BEGIN.match(text, begin)
    whole = match[0] if match else ""
    value = whole.rstrip(_TRAILING)
    if is_plain_word(value) or is_placeholder(whole):
        return None
    is_beside = separator[:1].isspace() and not {"=", ":"}.intersection(separator)
    if is_beside and not (name.startswith("-") and not value.startswith(("-", "<"))) and _NOT_A_VALUE.match(value):
        return None
    if not is_secret(value, sensitivity):
        return None
    is_word_of_code = is_code(value, name, text, begin, separator=separator, name_quoted=name_quoted)
    if is_word_of_code and not _is_whole_setting(text, begin, value, name, separator):
        return None
    match = _BARE.match(text, begin)  # the whole value, however long
    return begin, begin + len((match[0] if match else value).rstrip(_TRAILING))


def _is_whole_setting(text: str, begin: int, value: str, name: str, separator: str) -> bool:
    """Whether a line is `api_key = word` and nothing else. `token = word` is more often code."""
    if "=" not in separator or len(value) < _MIN_SETTING or not value.isalpha() or not _COMPOUND.match(name):
        return False
    line_start, line_end = text.rfind("\n", 0, begin) + 1, _line_end(text, begin)
    is_alone = (
        text[line_start:begin].strip() == f"{name}{separator}".strip()
        and not text[begin + len(value) : line_end].strip()
    )
    return is_alone and name_sensitivity(value) is Sensitivity.NONE


def header_span(text: str, at: int, name: str) -> Span | None:
    """A header's value: to the end of the header for `Cookie: a=1; b=2`, one token for `Authorization: Bearer …`."""
    if is_prose(text, at) or _SIGNED_SCHEME.match(text, at):
        return None
    scheme = _SCHEME.match(text, at) if name.lower().endswith("authorization") else None
    begin = scheme.end() if scheme else at
    match = _BARE.match(text, begin) if scheme else _HEADER.match(text, begin)
    value = (match[0] if match else "").rstrip(" \t" + _TRAILING)
    return (begin, begin + len(value)) if is_secret(value, Sensitivity.CERTAIN) else None


# -- names above their values ------------------------------------------------------------------------------------------
#
# In the head of a table, before a list, among the columns of an INSERT. Tables are Markdown, boxes of a database client, CSV,
# and columns parted by tabs or spaces. A head is never redacted, and of the cells, which may be anything, only what looks
# random or like a password.

_MAX_CELLS = 64
_HEADING = re.compile(r"[A-Za-z_][\w .-]{0,40}")
_RULER = re.compile(r"[\s|+=:│┼├┤─━┌┐└┘┬┴-]*")
# A line that may be the head of a table or the name above a list: words and delimiters only.
_CANDIDATE = re.compile(r"(?m)^[ \t|│\"'`-]*+[A-Za-z_][\w .,;|│\t\"'`-]*+(?:[:=][ \t]*+\[?[ \t]*+)?\r?\n")
_BARS = re.compile(r"[|│]")
_GAPS = re.compile(r"\t| {2,}")
_MIXED = (re.compile(r"[A-Za-z]"), re.compile(r"[0-9]"), re.compile(r"[!#$%&*@^~+=()]"))
_MIN_MIXED = 8  # characters
_QUOTES = "\"'` "
_OPENS_LIST = re.compile(r"([ \t]*+)(?:- )?[\"']?([A-Za-z_][\w.-]{0,63}+)[\"']?[ \t]*+[:=][ \t]*+(\[?)[ \t]*+\r?")
_ITEM = re.compile(r"([ \t]*+)(-[ \t]++)?([\"']?)([^\r\n]*?)\3[ \t]*,?[ \t\r]*")
_ENTRY = re.compile(r"[\"']?([\w.-]{1,64})[\"']?[ \t]*[:=](?:[ \t]+|$)")
_INSERT = re.compile(r"(?i)\binsert\s+into\s+[\w.\"'`\[\]]{1,128}\s*\(([^()\n]{1,2048})\)\s*values\s*(?=\()")
_ROW = re.compile(r"\(((?:'(?:[^'\n\\]|''|\\.)*+'|\"[^\"\n]*+\"|[^()'\"\n]++)*+)\)\s*,?\s*")
_SQL_VALUE = re.compile(r"[NE]?'((?:[^'\n\\]|''|\\.)*+)'|\"([^\"\n]*+)\"|([^,'\"\n]++)")


def scrub_tables(text: str, work: WorkBudget) -> str:
    """The text without the values under a sensitive name in tables and lists of several lines."""
    candidates = [match.start() for match in _CANDIDATE.finditer(text) if _STEM.search(match[0].lower())]
    if not candidates:
        return text
    lines = text.split("\n")
    number = done = start = 0
    for candidate in candidates:
        number += text.count("\n", start, candidate)
        start = candidate
        if number < done:
            continue
        columns = _head(lines[number])
        if columns is not None:
            done = _scrub_rows(lines, number + 1, *columns, work)
        elif (opened := _OPENS_LIST.fullmatch(lines[number])) and name_sensitivity(opened[2]) is Sensitivity.CERTAIN:
            done = _scrub_items(lines, number + 1, opened, work)
    return "\n".join(lines)


def scrub_inserts(text: str, work: WorkBudget) -> str:
    """The text without the values of sensitive columns in SQL INSERT statements."""
    return splice(text, _insert_replacements(text, work))


def _insert_replacements(text: str, work: WorkBudget) -> Iterator[tuple[int, int, str]]:
    done = 0
    for found in _INSERT.finditer(text):
        if found.start() < done:
            continue
        sensitive = [name_sensitivity(name.strip("\"'`[] ")) for name in found[1].split(",")]
        if Sensitivity.CERTAIN not in sensitive:
            continue
        row = _ROW.match(text, found.end())
        while row is not None:
            for (start, end), sensitivity in zip(_sql_values(text, *row.span(1)), sensitive, strict=False):
                value = text[start:end]
                if sensitivity is Sensitivity.CERTAIN and _is_sql_secret(value):
                    work.step()
                    yield start, end, work.replace(value)
                    done = end
            row = _ROW.match(text, row.end())


def _sql_values(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The spans of the values of a row: of a quoted one without its quotes."""
    for value in _SQL_VALUE.finditer(text, start, end):
        if value.lastindex != 3 or value[0].strip():
            yield value.span(value.lastindex or 0)


def _is_sql_secret(value: str) -> bool:
    bare = value.strip()
    return not (bare[:1] in "?:%$@" or bare.isdigit() or nothing_to_redact(bare) or bare.lower() in ("null", "default"))


def _head(line: str) -> tuple[str, dict[int, str], int] | None:
    """The delimiter, the names of the sensitive columns and the number of all columns, if the line is the head of a table."""
    if len(line) > 2048 or "=" in line or not any(sign in line for sign in ("|", "│", ",", ";", "\t", "  ")):
        return None
    for delimiter in "│|,;\t ":
        cells = _cells(line, delimiter)
        if cells is None or not 2 <= len(cells) <= _MAX_CELLS:
            continue
        names = [line[start:end].strip(_QUOTES) for start, end in cells]
        if not all(map(_HEADING.fullmatch, names)) or max(name.count(" ") for name in names) > 2:
            return None
        found = {place: name for place, name in enumerate(names) if _is_sensitive(name)}
        return (delimiter, found, len(cells)) if found else None
    return None


def _is_sensitive(name: str) -> bool:
    return name_sensitivity(name.replace(" ", "_")) is Sensitivity.CERTAIN


def _cells(line: str, delimiter: str) -> list[tuple[int, int]] | None:
    """The spans of the cells of a row; None if the line has no such delimiter."""
    if delimiter == " ":
        body = line.strip()
        edges = [match.span() for match in _GAPS.finditer(body)]
        start = line.find(body)
    elif delimiter in "|│":
        body = line.strip().strip("|│+")
        edges = [match.span() for match in _BARS.finditer(body)]
        start = line.find(body)
    else:
        body, start = line.rstrip("\r"), 0
        edges = list(_unquoted(body, delimiter))
    if not edges:
        return None
    begins = [0, *(end for _, end in edges)]
    ends = [*(begin for begin, _ in edges), len(body)]
    return [(start + begin, start + end) for begin, end in zip(begins, ends, strict=True)]


def _unquoted(line: str, delimiter: str) -> Iterator[tuple[int, int]]:
    quoted = False
    for at, char in enumerate(line):
        if char == '"':
            quoted = not quoted
        elif char == delimiter and not quoted:
            yield at, at + 1


def _scrub_rows(
    lines: list[str], at: int, delimiter: str, columns: dict[int, str], count: int, work: WorkBudget
) -> int:
    """Scrub the rows from line `at` on, and return the line after the table."""
    while at < len(lines) and lines[at].strip():
        if _RULER.fullmatch(lines[at]):
            at += 1
            continue
        cells = _cells(lines[at], delimiter)
        if cells is None or len(cells) != count:
            break
        for column in reversed(columns):
            lines[at] = _scrub_cell(lines[at], *cells[column], columns[column], work)
        at += 1
    return at


def _scrub_cell(line: str, start: int, end: int, name: str, work: WorkBudget) -> str:
    value = line[start:end].strip()
    start = line.find(value, start) if value else start
    if value[:1] in ('"', "'", "`") and len(value) > 2 and value[-1] == value[0]:
        start, value = start + 1, value[1:-1]
    if not value or is_placeholder(value) or not _is_cell_secret(value, name):
        return line
    work.step()
    return line[:start] + work.replace(value) + line[start + len(value) :]


def _is_cell_secret(value: str, name: str) -> bool:
    if is_secret(value, Sensitivity.LIKELY) or is_passphrase(value, name):
        return True
    return len(value) >= _MIN_MIXED and all(kind.search(value) for kind in _MIXED)


def _scrub_items(lines: list[str], at: int, opened: re.Match[str], work: WorkBudget) -> int:
    """Scrub the items of a list, or the values of a mapping, from line `at` on, and return the line after them."""
    indent = len(opened[1])
    while at < len(lines):
        item = _ITEM.fullmatch(lines[at])
        if item is None or not item[4] or len(item[1]) < indent:
            break
        entry = _ENTRY.match(item[4]) if not item[3] or item[4].count(item[3]) else None
        is_item = bool(item[2]) != bool(opened[3])
        if (opened[3] and item[4][0] in "]}") or not (is_item or (entry and not opened[3] and len(item[1]) > indent)):
            break
        key, start = (f"{opened[2]}_{entry[1]}", item.start(4) + entry.end()) if entry else (opened[2], item.start(4))
        value = lines[at][start : item.end(4)].strip(_QUOTES)
        start = lines[at].find(value, start)
        is_value = bool(value) and not is_placeholder(value) and not nothing_to_redact(value)
        if is_value and ((item[3] and not entry) or _is_cell_secret(value, key)):
            work.step()
            lines[at] = lines[at][:start] + work.replace(value) + lines[at][start + len(value) :]
        at += 1
    return at
