"""What proxies do with requests, as a file says it and as it is stored."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from domain.traffic.caller_match import Sticky
from domain.traffic.entrances import TrafficSettings, rules_in_words, settings_of
from domain.traffic.snapshot import RequestRules, known_rules, stored_together
from domain.traffic.tls import TlsSettings, UpstreamTls
from domain.traffic.wire import Protocol, Wire


@pytest.mark.parametrize("settings", [{}, {"path_prefix": "/a/"}, {"hosts": ["web"], "path_prefix": "/a/"}])
def test_requests_are_limited_where_they_are_told_apart_by_host_names(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="is counted by host names: name them in hosts, without path_prefix"):
        TrafficSettings(**settings, max_requests_per_second=5)
    assert TrafficSettings(hosts=("web",), max_requests_per_second=5).rules.max_requests_per_second == 5


def test_rules_without_a_column_are_stored_where_they_differ_and_newer_ones_are_passed_over() -> None:
    rules = RequestRules(timeout_seconds=3, hold_seconds=20, max_body_bytes=7)
    assert stored_together(rules) == {"hold_seconds": 20, "max_body_bytes": 7}
    stored = {**stored_together(rules), "of_a_newer_release": 1}
    assert known_rules(3, 5.0, 3600.0, "http1", stored, preview=True) == rules


def test_callers_are_known_either_by_a_cookie_or_by_a_header() -> None:
    for wrong in ({}, {"cookie": "a", "header": "b"}):
        with pytest.raises(ValidationError, match="must name either a cookie or a header"):
            TrafficSettings(sticky=wrong)
    with pytest.raises(ValidationError, match="is the proxy's own"):
        TrafficSettings(sticky={"header": "Host"})
    with pytest.raises(ValidationError, match="must be a name of letters, digits"):
        TrafficSettings(sticky={"cookie": "a b"})
    for sticky in (Sticky(cookie="Mine"), Sticky(header="X-User", max_load=1.5)):
        rules = RequestRules(sticky=sticky)
        stored = {**stored_together(rules)["sticky"], "of_a_newer_release": 1}
        assert known_rules(None, 5.0, 3600.0, "http1", {"sticky": stored}, preview=True) == rules
    assert TrafficSettings(sticky={"cookie": "Mine"}).rules.sticky == Sticky(cookie="Mine")
    assert stored_together(RequestRules(sticky=Sticky(cookie="Mine"))) == {"sticky": {"cookie": "Mine"}}
    assert Sticky(header="X-User").header == "x-user", "as proxies name headers"
    assert known_rules(None, 5.0, 3600.0, "http1", {"sticky": {"by": "address"}}, preview=True) == RequestRules()


def test_whether_it_is_reached_by_tls_is_stored_with_them() -> None:
    for tls in (TlsSettings(), TlsSettings(hsts_seconds=60)):
        rules = RequestRules(tls=tls)
        assert known_rules(None, 5.0, 3600.0, "http1", stored_together(rules), preview=True) == rules


@pytest.mark.parametrize(
    ("rules", "stored"),
    [
        (RequestRules(), {}),
        (RequestRules(hold_callers=1000), {}),
        (RequestRules(hold_callers=7, slow_start_seconds=30), {"hold_callers": 7, "slow_start_seconds": 30}),
        (RequestRules(max_requests_per_second=5), {"max_requests_per_second": 5}),
        (RequestRules(tls=TlsSettings()), {"tls": {}}),
        (RequestRules(tls=TlsSettings(hsts_seconds=60, http3=True)), {"tls": {"hsts_seconds": 60, "http3": True}}),
        (RequestRules(sticky=Sticky(cookie="mine")), {"sticky": {"cookie": "mine"}}),
        (RequestRules(upstream_tls=UpstreamTls()), {"upstream_tls": {}}),
        (RequestRules(upstream_tls=UpstreamTls(None, "inside")), {"upstream_tls": {"server_name": "inside"}}),
        (RequestRules(pages=(("502", "broken"),)), {"pages": {"502": "broken"}}),
    ],
)
def test_rules_that_share_a_column_are_stored_without_what_is_usual(
    rules: RequestRules, stored: dict[str, Any]
) -> None:
    assert stored_together(rules) == stored
    assert known_rules(None, 5.0, 3600.0, "http1", stored, preview=True) == rules


def test_the_wire_of_a_revision_takes_the_place_of_that_of_the_rules() -> None:
    rules, wire = RequestRules(3.0, hold_callers=7), Wire(Protocol.HTTP2, UpstreamTls(None, "inside"))
    assert rules.wire == Wire()
    assert rules.with_wire(wire) == RequestRules(
        3.0, protocol=Protocol.HTTP2, hold_callers=7, upstream_tls=UpstreamTls(None, "inside")
    )
    assert rules.with_wire(wire).wire == wire


OF_ITS_OWN: dict[str, Any] = {
    "request_timeout_seconds": 30,
    "hedge_after_seconds": None,
    "preview": False,
    "idle_timeout_seconds": 60,
    "protocol": "http2",
    "tls": "auto",
    "hold_seconds": 20,
    "hold_callers": 7,
    "max_body_bytes": 1,
    "max_requests_per_second": 5,
    "sticky": {"cookie": "mine", "max_load": 2},
    "upstream_tls": True,
    "pages": {"504": "late", "502": "broken"},
}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"strip_prefix": False},
        {"hosts": []},
        {"hosts": ["a.example.com", "b.example.com"]},
        {"hosts": ["a"], "path_prefix": "/b/"},
        {"hosts": [], "path_prefix": "/b/"},
        {"hosts": [], "path_prefix": "/b/", "strip_prefix": False},
        {"hosts": ["web"]},  # one of those that it has by default
        {"hosts": [], "path_prefix": "/web/"},
        {"hosts": ["web", "web.localhost"], "path_prefix": "/web/", "strip_prefix": False, "slow_start_seconds": 1},
        {"hosts": ["a.example.com"], **OF_ITS_OWN},
    ],
)
def test_settings_are_read_back_as_they_were_given(given: dict[str, Any]) -> None:
    settings = TrafficSettings(**given)
    found = settings_of("web", settings.entrances_of("web"), settings.rules)
    assert found.rules == settings.rules
    assert found.entrances_of("web") == settings.entrances_of("web")
    is_as_by_default = given.get("hosts") == ["web", "web.localhost"]
    assert found == (settings.model_copy(update={"hosts": None, "path_prefix": None}) if is_as_by_default else settings)


def test_a_slow_start_that_an_earlier_version_took_with_sticky_callers_is_left_out() -> None:
    settings = TrafficSettings(sticky={"cookie": "mine"})
    stored = replace(settings.rules, slow_start_seconds=30)
    assert settings_of("web", settings.entrances_of("web"), stored) == settings


def test_pages_are_kept_by_status() -> None:
    assert TrafficSettings(hosts=("a.example.com",), **OF_ITS_OWN).rules.pages == (("502", "broken"), ("504", "late"))


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (RequestRules(), ""),
        (RequestRules(protocol=Protocol.HTTP2), ", replicas speak HTTP/2"),
        (RequestRules(upstream_tls=UpstreamTls()), ", replicas speak TLS"),
        (RequestRules(pages=(("502", "a"), ("503", "b"))), ", with pages of its own for 502, 503"),
        (RequestRules(hold_seconds=20), ", waiting 20 s while nothing serves"),
        (RequestRules(slow_start_seconds=30), ", a new replica's share grows for 30 s"),
        (RequestRules(max_body_bytes=2000), ", bodies of 2,000 bytes at most"),
        (RequestRules(max_requests_per_second=50), ", 50 requests a second at most"),
        (RequestRules(sticky=Sticky(header="x-user")), ", callers stay with a replica by header x-user"),
    ],
)
def test_rules_in_words(rules: RequestRules, words: str) -> None:
    assert rules_in_words(rules) == words
