"""What proxies do with requests, as a file says it and as it is stored."""

from typing import Any

import pytest
from pydantic import ValidationError

from domain.traffic.entrances import TrafficSettings
from domain.traffic.published import RequestRules, known_rules, stored_together
from domain.traffic.tls import TlsSettings


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


def test_whether_it_is_reached_by_tls_is_stored_with_them() -> None:
    for tls in (TlsSettings(), TlsSettings(hsts_seconds=60)):
        rules = RequestRules(tls=tls)
        assert known_rules(None, 5.0, 3600.0, "http1", stored_together(rules), preview=True) == rules
