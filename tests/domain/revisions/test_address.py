"""The address that another system reports of a replica: what is taken, and what is refused by name."""

import pytest

from domain.text.errors import InvalidInputError
from tests.support.workers.payloads import ask


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.7:1",
        "10.0.0.7:65535",
        "127.0.0.1:8080",
        "[fd00::7]:80",
        "[::1]:80",
        "gpu-7.internal:80",
        "gpu_7:80",
        "169.254.example.com:80",
        f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 61}:80",
    ],
)
def test_an_address_that_a_replica_can_have(address: str) -> None:
    assert ask("report_route", address=address).address == address


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("", "must be host:port, such as 10.0.0.7:8080"),
        ("not an address", "must be host:port"),
        ("10.0.0.7", "with a port from 1 to 65535"),
        ("10.0.0.7:0", "with a port from 1 to 65535"),
        ("10.0.0.7:65536", "with a port from 1 to 65535"),
        ("10.0.0.7:080", "with a port from 1 to 65535"),
        ("10.0.0.7:٨٠", "with a port from 1 to 65535"),
        (":80", "'' is no host"),
        ("10.0.0.256:80", "'10.0.0.256' is no host"),
        ("10.1:80", "'10.1' is no host"),
        ("0x7f.0x1:80", "'0x7f.0x1' is no host"),
        ("a b:80", "'a b' is no host"),
        ("a/b:80", "'a/b' is no host"),
        ("http://a:80", "'http://a' is no host"),
        ("user@a:80", "'user@a' is no host"),
        ("-a:80", "'-a' is no host"),
        (f"{'a' * 64}:80", "is no host"),
        ("[gpu]:80", "is no host"),
        ("10.0.0.7]:80", "'10.0.0.7]' is no host"),
        ("[10.0.0.77:80", "'[10.0.0.77' is no host"),
        ("fd00::7:80", "must have an IPv6 address in brackets"),
        ("[10.0.0.7]:80", "must have an IPv6 address in brackets"),
        ("169.254.169.254:80", "is link-local, where no replica can be"),
        ("[fe80::1]:80", "is link-local"),
        ("[::ffff:169.254.169.254]:80", "is link-local"),
        ("0.0.0.0:80", "is every interface of a machine"),
        ("[::]:80", "is every interface of a machine"),
        ("224.0.0.1:80", "is many machines at once"),
        ("255.255.255.255:80", "is many machines at once"),
    ],
)
def test_an_address_that_no_replica_has_is_refused_with_what_would_be_right(address: str, said: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        ask("report_route", address=address)
    assert refused.value.message.startswith("address: ")
    assert said in refused.value.message
