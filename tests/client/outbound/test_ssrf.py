"""Destinations of notifications: every notation of an address, every kind of address, and malformed URLs."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.client.outbound.network import (
    EXPECTED_PUBLIC_URL,
    EXPECTED_URL,
    MAX_URL_LENGTH,
    AddressRefusedError,
    Destination,
    check_addresses,
    is_public,
    parse_url,
)

PRIVATE_HOSTS = """
    127.0.0.1 127.1 2130706433 0x7f000001 0X7F.1 0177.0.0.1 017700000001 127.0.0.1. 0 0.0.0.0 10.1.2.3 172.16.0.1
    192.168.1.1 100.64.0.1 169.254.169.254 0xa9fea9fe 2852039166 192.0.0.192 192.88.99.1 168.63.129.16 198.18.0.1
    203.0.113.7 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 [::] [::1] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1]
    [::ffff:7f00:1] [::ffff:a9fe:a9fe] [::127.0.0.1] [64:ff9b::127.0.0.1] [64:ff9b::a00:1] [64:ff9b:1::8.8.8.8]
    [2002:7f00:1::] [2002:a9fe:a9fe::1] [2002:808:808::1] [2a00:1450::5efe:127.0.0.1] [2a00:1450::5efe:a9fe:a9fe]
    [2a00:1450:4001:81b:200:5efe:10.1.2.3] [fe80::5efe:8.8.8.8] [2001:0:808:808:0:ffff:f7f7:f7f7] [2001:db8::1]
    [3fff::1] [5f00::1] [fc00::1] [fd00:ec2::254] [fe80::1] [fec0::1] [ff02::1] localhost LOCALHOST localhost.
    web.localhost
""".split()

PUBLIC_HOSTS = {
    "8.8.8.8": "8.8.8.8",
    "134744072": "8.8.8.8",
    "010.8.8.8": "8.8.8.8",
    "[2606:4700::1111]": "2606:4700::1111",
    "[::ffff:8.8.8.8]": str(IPv6Address("::ffff:808:808")),
    "[64:ff9b::8.8.8.8]": "64:ff9b::808:808",
    "[2a00:1450::5efe:8.8.8.8]": "2a00:1450::5efe:808:808",
    "Hooks.Example.com": "hooks.example.com",
    "hooks.example.com.": "hooks.example.com",
    "xn--bcher-kva.example": "xn--bcher-kva.example",
    "a_b.example": "a_b.example",
    "1.example": "1.example",
    "localhost.example.com": "localhost.example.com",
}

MALFORMED_URLS = [
    *"""
        hooks.example.com //hooks.example.com/ ftp://hooks.example.com/ file:///etc/passwd
        gopher://hooks.example.com/ https:/hooks.example.com https:// https:///path https://?query
        https://user@hooks.example.com/ https://user:secret@hooks.example.com/
        https://hooks.example.com@127.0.0.1/ https://hooks.example.com:0/ https://hooks.example.com:65536/
        https://hooks.example.com:1000000/ https://hooks.example.com:-1/ https://hooks.example.com:80:80/
        https://:443/ https://.example.com/ https://a..example.com/ https://-a.example.com/
        https://%31%32%37.0.0.1/ https://hooks.example.com%00.internal/ https://127.0.0.1%0d%0a/
        https://bücher.example/ https://１２７.0.0.1/ https://①②⑦.0.0.1/ https://127。0。0。1/
        https://hooks.example.com/ü https://256.1.1.1/ https://1.2.3.4.5/ https://08.8.8.8/ https://4294967296/
        https://1.16777216/ https://a.1/ https://hooks.0x7f/ https://[::1/ https://::1/ https://[fe80::1%25eth0]/
        https://[127.0.0.1]/ https://[::1]evil/ https://[]/
    """.split(),
    "",
    "https://hooks.example.com\\@127.0.0.1/",
    "https://hooks.example.com/a\\b",
    "https://hooks.example.com: 80/",
    "https://" + "a" * 64 + ".example.com/",
    "https://" + "a." * 127 + "aa/",
    "https://hooks.example.com/a b",
    "https://hooks.example.com/\r\nHost: other",
    "https://hooks.example.com/\x00",
    "https://hooks.example.com/" + "a" * MAX_URL_LENGTH,
]


@pytest.mark.parametrize("host", PRIVATE_HOSTS)
def test_a_private_address_is_refused_in_every_notation_unless_such_are_allowed(host: str) -> None:
    for scheme in ("http", "https"):
        assert parse_url(f"{scheme}://{host}:8080/hook?a=b", allow_private=False) == EXPECTED_PUBLIC_URL
    assert isinstance(parse_url(f"http://{host}/", allow_private=True), Destination)


@pytest.mark.parametrize("host", PUBLIC_HOSTS)
def test_a_public_host_is_normalized(host: str) -> None:
    destination = parse_url(f"https://{host}/", allow_private=False)
    assert isinstance(destination, Destination) and destination.host == PUBLIC_HOSTS[host]


@pytest.mark.parametrize("url", MALFORMED_URLS)
def test_a_malformed_url_is_always_refused(url: str) -> None:
    assert parse_url(url, allow_private=False) == parse_url(url, allow_private=True) == EXPECTED_URL


@pytest.mark.parametrize(
    ("url", "expected", "authority"),
    [
        ("https://h.example", Destination("https", "h.example", 443, "/"), "h.example"),
        ("HTTPS://H.example:443/A?b=/c@d#e?f", Destination("https", "h.example", 443, "/A?b=/c@d"), "h.example"),
        ("http://h.example:/", Destination("http", "h.example", 80, "/"), "h.example"),
        ("http://h.example?x", Destination("http", "h.example", 80, "/?x"), "h.example"),
        ("http://h.example#x", Destination("http", "h.example", 80, "/"), "h.example"),
        ("http://h.example:443/", Destination("http", "h.example", 443, "/"), "h.example:443"),
        ("https://[2606:4700::1111]:1/", Destination("https", "2606:4700::1111", 1, "/"), "[2606:4700::1111]:1"),
        ("https://0x08080808/", Destination("https", "8.8.8.8", 443, "/"), "8.8.8.8"),
    ],
)
def test_a_url_is_parsed_into_its_destination(url: str, expected: Destination, authority: str) -> None:
    destination = parse_url(url, allow_private=False)
    assert destination == expected
    assert isinstance(destination, Destination) and destination.authority == authority


@st.composite
def spelled(draw: st.DrawFn) -> tuple[IPv4Address, str]:
    """An IPv4 address, and one of the ways in which a resolver reads it."""
    address = draw(st.ip_addresses(v=4))
    count = draw(st.integers(1, 4))
    number = int(address)
    parts = [number >> 8 * (3 - place) & 255 for place in range(count - 1)]
    parts.append(number & (256 ** (5 - count) - 1))
    shapes = draw(st.lists(st.sampled_from(["{}", "0x{:x}", "0X{:08X}", "0{:o}", "000{:o}"]), min_size=4, max_size=4))
    return address, ".".join(shape.format(part) for shape, part in zip(shapes, parts, strict=False))


@given(spelled())
def test_an_ipv4_address_is_recognized_in_every_notation(case: tuple[IPv4Address, str]) -> None:
    address, text = case
    anyhow = parse_url(f"http://{text}/", allow_private=True)
    assert isinstance(anyhow, Destination) and anyhow.host == str(address)
    assert isinstance(parse_url(f"http://{text}/", allow_private=False), Destination) == is_public(address)


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_inside_an_ipv6_one_is_no_more_public_than_by_itself(address: IPv4Address) -> None:
    number = int(address)
    for around in (0xFFFF << 32 | number, 0x64FF9B << 96 | number):
        assert is_public(IPv6Address(around)) == is_public(address)
    assert not is_public(IPv6Address(number))


@given(st.ip_addresses())
def test_every_address_that_the_standard_library_calls_private_is_refused(address: IPv4Address | IPv6Address) -> None:
    assert not (is_public(address) and (address.is_private or address.is_loopback or address.is_link_local)) or (
        isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    )


@given(st.text(max_size=40) | st.from_regex(r"https?://[ -~]{0,30}", fullmatch=True), st.booleans())
def test_any_text_is_parsed_or_refused(text: str, allow_private: bool) -> None:
    destination = parse_url(text, allow_private=allow_private)
    if isinstance(destination, str):
        assert destination in (EXPECTED_URL, EXPECTED_PUBLIC_URL)
    else:
        assert 0 < destination.port < 65536 and destination.request_target.startswith("/")
        assert not set(destination.host) & set("@/\\ %[]") and destination.host


def test_one_private_address_refuses_all_addresses_of_a_name() -> None:
    check_addresses(["8.8.8.8", "2606:4700::1111"], allow_private=False)
    check_addresses(["8.8.8.8", "127.0.0.1"], allow_private=True)
    for addresses in (["8.8.8.8", "127.0.0.1"], ["::1", "8.8.8.8"], ["8.8.8.8", "fe80::1%eth0"]):
        with pytest.raises(AddressRefusedError):
            check_addresses(addresses, allow_private=False)


@pytest.mark.parametrize("text", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888"])
def test_addresses_of_well_known_public_hosts_are_public(text: str) -> None:
    assert is_public(ip_address(text))
