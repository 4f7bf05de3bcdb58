"""Settings of TLS: what may be said, which certificates are wanted of it, and when one is asked for again."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from domain.traffic.entrances import TrafficSettings, rules_in_words
from domain.traffic.tls import (
    CertificateKind,
    TlsSettings,
    UpstreamTls,
    asked_again_after,
    known_tls,
    renewed_at,
    tried_again_after,
    wanted_certificates,
    why_no_certificate,
)
from domain.traffic.tls_material import is_for, some_of, why_unfit

OWN: Any = {"certificate": "file:/c.pem", "key": "file:/c.key"}
HOSTS = ("a.example.com", "b.example.com")


@pytest.mark.parametrize(
    ("tls", "wanted"),
    [
        (None, set()),
        (TlsSettings(), {(CertificateKind.ACME, host) for host in HOSTS}),
        (TlsSettings(**OWN), {(CertificateKind.GIVEN, "")}),
        (TlsSettings(**OWN, callers_ca="file:/ca.pem"), {(CertificateKind.GIVEN, ""), (CertificateKind.CALLERS, "")}),
    ],
)
def test_which_certificates_are_wanted(tls: TlsSettings | None, wanted: set[tuple[CertificateKind, str]]) -> None:
    assert wanted_certificates(tls, HOSTS) == wanted


@pytest.mark.parametrize(
    ("upstream", "wanted"),
    [
        (None, set()),
        (UpstreamTls(), set()),  # those of the system are there
        (UpstreamTls("file:/ca.pem", "inside"), {(CertificateKind.REPLICAS, "file:/ca.pem")}),
    ],
)
def test_the_authorities_of_replicas_are_wanted_where_they_are_named(
    upstream: UpstreamTls | None, wanted: set[tuple[CertificateKind, str]]
) -> None:
    assert wanted_certificates(None, HOSTS, upstream) == wanted
    assert wanted_certificates(TlsSettings(**OWN), HOSTS, upstream) == wanted | {(CertificateKind.GIVEN, "")}


@pytest.mark.parametrize("host", ["web.example.com", "*.example.com", "localhost.example.com"])
def test_an_authority_gives_certificates_for_names_of_two_labels(host: str) -> None:
    assert why_no_certificate(host) is None


@pytest.mark.parametrize("host", ["web", "*.com", "web.localhost", "*.web.localhost"])
def test_an_authority_gives_none_for_names_that_are_of_one_network(host: str) -> None:
    assert (why_no_certificate(host) or "").startswith(f"{host} is no name that an authority gives a certificate for")


@pytest.mark.parametrize(
    ("names", "presented", "hosts", "why"),
    [
        ("a.x", "", "a.x", None),
        ("a.x", "a.x", "a.x b.x", None),
        ("*.x", "a.x b.x", "a.x b.x", None),
        ("a.x", "", "", None),
        ("c.x", "", "a.x b.x", "it is for c.x, and not for a.x, b.x"),
        ("a.x", "a.x b.x", "a.x b.x", "it is not for b.x, for which the one is that is shown"),
        ("a.x", "b.x c.x", "a.x b.x c.x d.x", "it is not for b.x, c.x, for which the one is that is shown"),
        ("a.x", "c.x", "a.x b.x", None),
    ],
)
def test_a_certificate_takes_the_place_of_another_unless_a_host_would_have_none(
    names: str, presented: str, hosts: str, why: str | None
) -> None:
    assert why_unfit(names.split(), presented.split(), hosts.split()) == why


@pytest.mark.parametrize(
    ("names", "words"), [("a", "a"), ("a b c", "a, b, c"), ("a b c d", "a, b, c and 1 more"), ("", "")]
)
def test_three_names_are_said_and_how_many_more_there_are(names: str, words: str) -> None:
    assert some_of(names.split()) == words


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"hosts": HOSTS, "tls": "automatic"}, "must be auto, or a certificate with its key"),
        ({"hosts": HOSTS, "tls": {"certificate": "file:/c.pem"}}, "key: a certificate and its key go together"),
        ({"hosts": HOSTS, "tls": {"key": "file:/c.key"}}, "certificate: a certificate and its key go together"),
        ({"hosts": HOSTS, "tls": {**OWN, "key": "/c.key"}}, "begins with 'file:', 'env:' or 'command:'"),
        ({"hosts": HOSTS, "tls": {"http3": True, "callers_ca": "file:/ca.pem"}}, "http3: proxies ask callers for no"),
        ({"hosts": HOSTS, "tls": {**OWN, "hsts_seconds": -1}}, "greater than or equal to 0"),
        ({"tls": "auto"}, "certificates are made out to host names; name them in hosts"),
        ({"hosts": ["web"], "tls": "auto"}, "web is no name that an authority gives a certificate for"),
        ({"hosts": ["web.localhost"], "tls": "auto"}, "or give a certificate"),
        ({"hosts": HOSTS, "path_prefix": "/a/", "tls": {**OWN, "callers_ca": "file:/ca"}}, "without a certificate"),
        (
            {"sticky": {"cookie": "mine"}, "slow_start_seconds": 30},
            "slow_start_seconds: with sticky callers stay with a replica",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_would(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        TrafficSettings(**settings)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"hosts": ["web", "web.localhost"], "tls": OWN},
        {"hosts": HOSTS, "path_prefix": "/a/", "tls": OWN},
        {"hosts": HOSTS, "tls": {**OWN, "callers_ca": "file:/ca"}},
        {"hosts": HOSTS, "tls": "auto", "sticky": {"cookie": "mine"}},
        {"hosts": HOSTS, "tls": "auto", "slow_start_seconds": 30},
    ],
)
def test_each_of_two_that_exclude_each_other_makes_sense_alone(settings: dict[str, Any]) -> None:
    assert TrafficSettings(**settings).tls is not None


def test_what_is_said_is_what_is_meant() -> None:
    auto = TrafficSettings(hosts=HOSTS, tls="auto")
    own = TrafficSettings(hosts=HOSTS, tls={**OWN, "hsts_seconds": 60})
    assert (auto.tls, own.tls) == (TlsSettings(), TlsSettings(**OWN, hsts_seconds=60))
    assert rules_in_words(auto.rules) == ", over HTTPS, with certificates from an authority"
    assert rules_in_words(own.rules) == ", over HTTPS"


def test_what_a_newer_release_stored_beside_is_left_out() -> None:
    assert known_tls(None) is None
    assert known_tls({"hsts_seconds": 60, "ech": True}) == TlsSettings(hsts_seconds=60)


@pytest.mark.parametrize(
    ("names", "host", "is_good"),
    [
        ("a.example.com", "a.example.com", True),
        ("*.example.com", "a.example.com", True),
        ("*.example.com", "*.example.com", True),
        ("a.example.com", "*.example.com", False),
        ("*.example.com", "example.com", False),
        ("*.example.com", "b.a.example.com", False),
        ("*.com", "com", False),
        ("b.example.com a.example.com", "a.example.com", True),
    ],
)
def test_for_which_hosts_a_certificate_is(names: str, host: str, *, is_good: bool) -> None:
    assert is_for(names.split(), host) is is_good


def test_one_is_renewed_at_two_thirds_of_its_life() -> None:
    begins = datetime(2026, 1, 1, tzinfo=UTC)
    assert renewed_at(begins, begins + timedelta(days=90)) == begins + timedelta(days=60)


def test_five_tries_take_an_hour_and_a_failing_one_is_tried_twice_a_day() -> None:
    pauses = [tried_again_after(failures) for failures in range(1, 100)]
    assert pauses[:5] == [timedelta(minutes=minutes) for minutes in (2, 4, 8, 16, 32)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == timedelta(hours=12)


def test_an_authority_that_was_away_is_asked_again_soon_and_then_every_ten_minutes() -> None:
    pauses = [asked_again_after(failures).total_seconds() for failures in range(1, 10)]
    assert pauses == [10, 20, 40, 80, 160, 320, 600, 600, 600]
