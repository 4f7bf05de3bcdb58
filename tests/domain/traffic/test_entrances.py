"""Where a deployment is reached: host names and prefixes that are taken or refused, and those a new one gets."""

from typing import Any

import pytest
from pydantic import ValidationError

from domain.commands.registry import parse_command
from domain.text.errors import InvalidInputError
from domain.traffic.entrances import (
    EntranceTakenError,
    TrafficSettings,
    default_entrances,
    enclosing,
    entrances_in_words,
    in_order,
    named_after,
)
from domain.traffic.snapshot import Entrance, EntranceKind, RequestRules
from domain.traffic.wire import Protocol, known_protocol

LABEL = "a" * 63
LONGEST_HOST = f"{LABEL}.{LABEL}.{LABEL}.{'a' * 61}"
LONGEST_PREFIX = f"/{'a' * 198}/"


def host(value: str) -> Entrance:
    return Entrance(EntranceKind.HOST, value)


def prefix(value: str, *, strip: bool = True) -> Entrance:
    return Entrance(EntranceKind.PREFIX, value, strip)


@pytest.mark.parametrize(
    "value",
    [
        "web",
        "a",
        "7a",
        "web.example.com",
        "*.example.com",
        "1.example.com",
        "*.web.localhost",
        "localhost.example.com",
        "0xg",
        "a-b.c",
        LABEL,
        LONGEST_HOST,
        "previews.web",
        "x.preview.y",
    ],
)
def test_a_host_name_that_is_taken(value: str) -> None:
    assert TrafficSettings(hosts=(value,)).entrances_of("web") == (host(value),)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("web:80", "without a port"),
        ("Web", "lower-case host name"),
        ("", "lower-case host name"),
        ("a..b", "lower-case host name"),
        ("-a", "lower-case host name"),
        ("a-", "lower-case host name"),
        ("a.*.b", "lower-case host name"),
        ("*", "lower-case host name"),
        ("a_b", "lower-case host name"),
        ("a.", "lower-case host name"),
        (f"{LABEL}a", "lower-case host name"),
        (f"{LONGEST_HOST}a", "lower-case host name"),
        ("web.example.com/", "lower-case host name"),
        ("*.com", "two labels at least"),
        ("*.localhost", "two labels at least"),
        ("localhost", "must not be localhost or an IP address"),
        ("rollway.localhost", "which is the page's alone"),
        ("evil.rollway.localhost", "which is the page's alone"),
        ("*.rollway.localhost", "which is the page's alone"),
        ("127.0.0.1", "must not be localhost or an IP address"),
        ("7", "must not be localhost or an IP address"),
        ("127.1", "must not be localhost or an IP address"),
        ("0x7f.1", "must not be localhost or an IP address"),
        ("0x7f000001", "must not be localhost or an IP address"),
        ("*.0.0.1", "must not be localhost or an IP address"),
        ("preview.web", "must not begin with 'preview.'"),
        ("*.preview.web", "must not begin with 'preview.'"),
    ],
)
def test_a_host_name_that_is_refused(value: str, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        TrafficSettings(hosts=(value,))


@pytest.mark.parametrize("value", ["/", "/web/", "/a/b/", "/A-z0.9_~/", "/.../", LONGEST_PREFIX])
def test_a_prefix_that_is_taken(value: str) -> None:
    assert TrafficSettings(path_prefix=value).entrances_of("web") == (prefix(value),)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "web",
        "/web",
        "web/",
        "//",
        "/a//b/",
        "/./",
        "/a/../b/",
        "/a b/",
        "/a?/",
        "/a%2Fb/",
        f"{LONGEST_PREFIX}/",
        "/" + "a" * 199 + "/",
    ],
)
def test_a_prefix_that_is_refused(value: str) -> None:
    with pytest.raises(ValidationError, match="must begin and end with '/'"):
        TrafficSettings(path_prefix=value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"hosts": ["Web.example.com"]}, "host 1: 'Web.example.com' must be a lower-case host name"),
        ({"hosts": ["web:80"]}, "host 1: 'web:80' must be a host name alone, without a port"),
        ({"hosts": ["web", "a_b"]}, "host 2: 'a_b' must be a lower-case host name"),
        ({"hosts": ["preview.web"]}, "must not begin with 'preview.', where new revisions are looked at"),
        ({"path_prefix": "api/"}, "path_prefix: 'api/' must begin and end with '/', such as /api/"),
        ({"path_prefix": "/a?b=/"}, "and hold letters, digits"),
        ({"request_timeout_seconds": 0}, "request_timeout_seconds: must be at least 0.001"),
        ({"request_timeout_seconds": 1e9}, "request_timeout_seconds: must be at most 86400"),
        ({"colour": 80}, "colour: there is no such field; the fields are "),
    ],
)
def test_a_command_that_is_refused_names_the_value(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse_command("rollway.set_traffic", {"request_id": "r", "deployment": "web", **given})
    assert said in refused.value.message


@pytest.mark.parametrize(
    ("deployment", "entrances"),
    [
        ("web", (host("web"), host("web.localhost"), prefix("/web/"))),
        ("a..b", (prefix("/a..b/"),)),
        ("localhost", (host("localhost.localhost"), prefix("/localhost/"))),
        ("127.0.0.1", (host("127.0.0.1.localhost"), prefix("/127.0.0.1/"))),
        ("web.2", (host("web.2.localhost"), prefix("/web.2/"))),
        ("preview.web", (prefix("/preview.web/"),)),
        (LABEL, (host(LABEL), host(f"{LABEL}.localhost"), prefix(f"/{LABEL}/"))),
        ("..", ()),
    ],
)
def test_a_new_deployment_is_reached_by_every_form_of_its_name_that_is_valid(
    deployment: str, entrances: tuple[Entrance, ...]
) -> None:
    assert default_entrances(deployment) == entrances
    assert TrafficSettings().entrances_of(deployment) == entrances


@pytest.mark.parametrize(
    ("settings", "entrances"),
    [
        ({}, (host("web"), host("web.localhost"), prefix("/web/"))),
        ({"strip_prefix": False}, (host("web"), host("web.localhost"), prefix("/web/", strip=False))),
        ({"hosts": ()}, ()),
        ({"hosts": ("b", "a", "b")}, (host("a"), host("b"))),
        ({"path_prefix": "/api/"}, (prefix("/api/"),)),
        ({"path_prefix": "/api/", "strip_prefix": False}, (prefix("/api/", strip=False),)),
        ({"hosts": ("z",), "path_prefix": "/a/"}, (host("z"), prefix("/a/"))),
    ],
)
def test_what_is_named_replaces_all_and_naming_nothing_leaves_it_to_rollway(
    settings: dict[str, Any], entrances: tuple[Entrance, ...]
) -> None:
    assert TrafficSettings(**settings).entrances_of("web") == entrances
    assert TrafficSettings(**settings).is_default == (not {"hosts", "path_prefix"} & settings.keys())


def test_who_may_not_see_the_owner_of_an_entrance_is_refused_without_its_name() -> None:
    refused = EntranceTakenError.by("shop", "web", "host", "example.com")
    assert refused.message == (
        "host example.com is shop's, so web cannot have it; take it from shop first, or use another"
    )
    assert refused.detail == {"deployment": "web", "entrance": "example.com", "owner": "shop"}
    unnamed = refused.unnamed()
    assert isinstance(unnamed, EntranceTakenError)
    assert unnamed.message == "example.com is another deployment's, so web cannot have it; use another"
    assert unnamed.detail == {"deployment": "web", "entrance": "example.com"}


def test_hosts_stand_before_prefixes_and_each_by_name() -> None:
    assert in_order([prefix("/a/"), host("b"), prefix("/"), host("a")]) == (
        host("a"),
        host("b"),
        prefix("/"),
        prefix("/a/"),
    )


@pytest.mark.parametrize(
    ("entrances", "rules", "words"),
    [
        ([], RequestRules(), "nowhere"),
        ([prefix("/web/"), host("web")], RequestRules(), "web, /web/"),
        ([prefix("/web/", strip=False), host("web")], RequestRules(), "web, /web/ (passed on)"),
        ([host("web")], RequestRules(2.5), "web, each request within 2.5 s"),
        ([host("web")], RequestRules(None, 2), "web, hedged after 2 s"),
        ([host("web")], RequestRules(idle_timeout_seconds=5), "web, cut when silent for 5 s"),
        ([host("web")], RequestRules(idle_timeout_seconds=None), "web, never cut when silent"),
        (
            [host("web")],
            RequestRules(1, None, preview=False),
            "web, each request within 1 s, never hedged, without a preview",
        ),
    ],
)
def test_in_words(entrances: list[Entrance], rules: RequestRules, words: str) -> None:
    assert entrances_in_words(entrances, rules) == words


def test_a_protocol_of_a_newer_release_is_taken_for_http1() -> None:
    assert (known_protocol("http2"), known_protocol("http9")) == (Protocol.HTTP2, Protocol.HTTP1)


@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        (prefix("/web/"), []),
        (prefix("/"), []),
        (prefix("/web/login/now/"), ["/web/login/", "/web/"]),
        (host("web"), []),
        (host("*.web.app"), ["web.app", "app", "*.app"]),
        (host("a.web.app"), ["web.app", "*.web.app", "app", "*.app"]),
    ],
    ids=lambda value: getattr(value, "value", ""),
)
def test_an_entrance_lies_in_those_whose_requests_it_would_take(inner: Entrance, outer: list[str]) -> None:
    assert [(found.kind, found.value) for found in enclosing(inner)] == [(inner.kind, value) for value in outer]


def test_an_entrance_is_named_after_the_deployment_that_gets_it_by_default() -> None:
    found = named_after([host("web"), host("shop.localhost"), host("a.example.com"), prefix("/api/"), prefix("/a/b/")])
    assert set(found) - {"a/b"} == {"web", "shop", "shop.localhost", "a.example.com", "api"}
    assert named_after([prefix("/")]) == {}, "no deployment gets it by default"
