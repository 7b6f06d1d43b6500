"""Recall over synthetic secrets of every family, whole and cut short, in the places where secrets turn up.

Secrets are made when the tests run, so that none stands in the repository: `{A36}` in a template is 36 characters of the
alphabet A.
"""

from __future__ import annotations

import random
import re

import pytest

from discreet.errors.redaction import Scrubber
from discreet.errors.redaction.token_formats import PATTERNS, PREFIXES, Prefilter, RuleScrubber, literal_rules

from .families import ALPHABETS, ANYWHERE, ASSIGNED, NAMED, SHAPELESS, TOKENS, make

WHOLE_ONLY = {
    "Airtable", "Asana", "Authress", "Azure AD", "chance alone", "Discord", "Facebook", "Mailchimp", "MaxMind",
    "Telegram", "Terraform",
}  # fmt: skip
"""Of these the beginning does not suffice."""

WITHOUT_A_FORMAT = [
    "{a32}", "{h32}", "{h40}", "{h64}", "{A40}", "{a20}", "{E40}", "{h8}-{h4}-{h4}-{h4}-{h12}", "{d18}", "{B40}", "{A15}", "{a25}",
]  # fmt: skip
"""Recognised by the name before them."""


@pytest.fixture(scope="module")
def scrubber() -> Scrubber:
    return Scrubber()


def recall(scrubber: Scrubber, cases: list[tuple[str, str]]) -> float:
    """The share of (text, secret) in whose scrubbed text nothing of the secret's whole is left."""
    return sum(secret not in scrubber.scrub(text) for text, secret in cases) / len(cases)


def placed(template: str, places: list[str], draw: random.Random, rounds: int = 1) -> list[tuple[str, str]]:
    secrets = [make(template, draw) for _ in range(rounds)]
    return [(place.replace("{T}", secret), secret) for secret in secrets for place in places]


def test_tokens_are_found_by_their_format_wherever_they_stand(scrubber: Scrubber) -> None:
    found = {
        family: recall(scrubber, placed(TOKENS[family], ANYWHERE, random.Random(family), 3))
        for family in TOKENS.keys() - SHAPELESS
    }
    assert {family: share for family, share in found.items() if share < 0.9} == {}
    assert sum(found.values()) / len(found) >= 0.985


def test_tokens_are_found_under_their_names(scrubber: Scrubber) -> None:
    found = {family: recall(scrubber, placed(TOKENS[family], NAMED, random.Random(family), 2)) for family in TOKENS}
    assert {family: share for family, share in found.items() if share < 0.85} == {}
    assert sum(found.values()) / len(found) >= 0.98


def test_values_are_found_under_the_names_of_settings(scrubber: Scrubber) -> None:
    draw = random.Random(2)
    for templates, rounds in ((WITHOUT_A_FORMAT, 4), (TOKENS.values(), 1)):
        cases = [case for template in templates for case in placed(template, ASSIGNED, draw, rounds)]
        assert recall(scrubber, cases) >= 0.99


def test_secrets_that_were_cut_short_are_found(scrubber: Scrubber) -> None:
    draw = random.Random(4)
    cases = []
    for template in [TOKENS[family] for family in sorted(TOKENS.keys() - SHAPELESS)]:
        secret = make(template, draw)
        for share in (0.35, 0.5, 0.7, 0.9):
            part = secret[: max(12, int(len(secret) * share))]
            cases += [(part, part), (f"connecting with {part}", part), (f'"{part}', part)]
    assert recall(scrubber, cases) >= 0.88


def test_the_first_half_of_a_token_with_a_prefix_is_found(scrubber: Scrubber) -> None:
    draw = random.Random(5)
    parts = [
        secret[: max(14, len(secret) // 2)]
        for family, template in TOKENS.items()
        if family not in WHOLE_ONLY | SHAPELESS and (secret := make(template, draw))
    ]
    assert recall(scrubber, [(f"got {part}", part) for part in parts]) >= 0.95


def test_every_rule_of_the_table_compiles_and_is_woken_by_something(scrubber: Scrubber) -> None:
    for rule in (*PREFIXES, *PATTERNS):
        assert RuleScrubber(rule).scrub("nothing to see", lambda _: "x") == "nothing to see"
    reachable = {scrubber.rule.family for _, scrubber in literal_rules()} | {
        rule.family for rule in PATTERNS if rule.min_word
    }
    assert reachable == {rule.family for rule in (*PREFIXES, *PATTERNS)}


def test_every_rule_that_fits_a_token_is_tried_on_its_line() -> None:
    prefilter = Prefilter(literal_rules())
    for family, template in TOKENS.items():
        text = f"got {make(template, random.Random(family))} here"
        tried = {each.rule for each in prefilter.matching_rules(text, text.lower())}
        longest = max(map(len, text.split()))
        tried |= {rule for rule in PATTERNS if not rule.literals and rule.min_word <= longest}
        fitting = {rule for rule in (*PREFIXES, *PATTERNS) if RuleScrubber(rule).scrub(text, lambda _: "x") != text}
        assert fitting <= tried, family


def test_every_prefix_of_the_table_is_found(scrubber: Scrubber) -> None:
    missed = []
    for rule in PREFIXES:
        allowed = [char for char in ALPHABETS["A"] if re.fullmatch(rule.tail, char)]
        for prefix in rule.prefixes.split():
            draw = random.Random(prefix)
            tokens = [prefix + "".join(draw.choices(allowed, k=max(32, rule.min_tail))) for _ in range(10)]
            if sum("<redacted>" in scrubber.scrub(f"got {token} here") for token in tokens) < 9:
                missed.append(prefix)
    assert missed == []


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("https://hooks.slack.com/services/T0000/B0000/{A24}", "{A24}"),
        ("https://discord.com/api/webhooks/123456789012345678/{W60}", "{W60}"),
        ("https://acme.webhook.office.com/webhookb2/{h32}@{h32}/IncomingWebhook/{h32}", "{h32}"),
        ("https://hooks.zapier.com/hooks/catch/{d7}/{a6}/", "{d7}"),
        ("https://api.telegram.org/bot{d10}:AA{W33}/getMe", "{W33}"),
        ("https://bob:{A20}@example.com/path", "{A20}"),
        ("https://{h32}@o12.ingest.sentry.io/34", "{h32}"),
        ("postgres://bob:pa/{A12}@db.example.com:5432/x", "{A12}"),
        ("redis://:{A20}@cache:6379/0", "{A20}"),
        ("jdbc:oracle:thin:bob/{A12}@//db:1521/x", "{A12}"),
        ("connect to bob:{A14}@db.example.com failed", "{A14}"),
        ("next=postgres%3A%2F%2Fbob%3A{A20}%40db%2Fx", "{A20}"),
        ("DefaultEndpointsProtocol=https;AccountName=a;AccountKey={B86}==;EndpointSuffix=x", "{B86}"),
        ("https://a.blob.core.windows.net/c?sv=2020&sig={A40}%3D&se=2026", "{A40}"),
        ("otpauth://totp/x?secret={b16}&issuer=x", "{b16}"),
        ('Authorization: Digest username="bob", realm="x", response="{h32}"', "{h32}"),
        ("Authorization: AWS4-HMAC-SHA256 Credential=x/y, Signature={h64}", "{h64}"),
        ("Cookie: theme=dark; sid={A26}; lang=en", "{A26}"),
        ("Set-Cookie: x={A26}; Path=/; HttpOnly", "{A26}"),
        ("curl -u bob:{A14} https://example.com", "{A14}"),
        ("mysql -u root -p{A14} shop", "{A14}"),
        ("sshpass -p {A14} ssh host", "{A14}"),
        ("docker login -u bob -p {A14} registry", "{A14}"),
        ("redis-cli -h cache -a {A14} ping", "{A14}"),
        ("ldapsearch -D cn=x -w {A14} -b dc=x", "{A14}"),
        ("openssl rsa -in k.pem -passin pass:{A14}", "{A14}"),
        ("machine example.com login bob password {A14}", "{A14}"),
        ("smbclient //host/share -U bob%{A14}", "{A14}"),
        ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{B43} bob", "{B43}"),
        ("-----BEGIN RSA PRIVATE KEY-----\n{B64}\n{B64}\n-----END RSA PRIVATE KEY-----", "{B64}"),
        ("-----BEGIN PRIVATE KEY-----\n{B64}\n{B20}", "{B20}"),
        ('{"key": "-----BEGIN EC PRIVATE KEY-----\\n{B64}\\n-----END EC PRIVATE KEY-----\\n"}', "{B64}"),
        ("apiVersion: v1\nkind: Secret\ndata:\n  extra: {B20}=\ntype: Opaque", "{B20}"),
        ('{"kind":"Secret","data":{"extra":"{B20}="}}', "{B20}"),
        ("_gitlab_session={h32}", "{h32}"),
        ("GET /x?sessionid={a32} 200", "{a32}"),
    ],
)
def test_credentials_in_urls_headers_commands_and_files_are_found(scrubber: Scrubber, text: str, secret: str) -> None:
    for seed in range(8):
        draw = random.Random(seed)
        made: dict[str, str] = {}
        filled = re.sub(r"\{(.)(\d+)\}", lambda m: made.setdefault(m[0], make(m[0], draw)), text)
        assert made[secret] not in scrubber.scrub(filled), filled


def test_what_stands_around_a_secret_stays(scrubber: Scrubber) -> None:
    draw = random.Random(6)
    token = make("gh" + "p_{A36}", draw)
    assert scrubber.scrub(f"before {token} after") == "before <redacted> after"
    assert scrubber.scrub("https://bob:abc123@example.com/a?b=c") == "https://<redacted>@example.com/a?b=c"
    assert scrubber.scrub(f'{{"token": "{token}", "n": 1}}') == '{"token": "<redacted>", "n": 1}'
    assert scrubber.scrub(f"Authorization: Bearer {token}") == "Authorization: Bearer <redacted>"


@pytest.mark.parametrize(
    "between", ["\x1b[0m", "\x1b[38;5;1m", "\0", "\u200b", "\u00ad", "\ufeff", "\U000e0041", "\x1b]8;;x\x1b\\"]
)
def test_nothing_invisible_hides_a_token(between: str) -> None:
    token = "gh" + "p_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
    scrubber = Scrubber()
    for at in range(1, len(token)):
        scrubbed = scrubber.scrub(f"got {token[:at]}{between}{token[at:]} here")
        assert scrubbed == "got <redacted> here"
        assert scrubber.scrub(scrubbed) == scrubbed
