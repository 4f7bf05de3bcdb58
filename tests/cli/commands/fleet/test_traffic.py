"""`rollway traffic`, `proxies`, `hosts`, and where `status` says that a deployment is reached."""

import json
import os
import re
from pathlib import Path

import pytest
from sqlalchemy import Engine

from cli.show.status import reached_in_words
from db.connection.transactions import transaction
from db.proxies.acks import Ack, SeenProxy, begin_publishing, note_acks, note_proxies
from db.replicas.heartbeats import show_sign_of_life
from db.views.fleet_views import ReachedView
from domain.traffic.entrances import default_entrances
from domain.traffic.snapshot import Entrance, EntranceKind, RequestRules
from runtime.machine.identity import identify
from stack.home.folder import Home
from stack.home.stack_state import PartState, StackState, write_state
from tests.cli.conftest import Rollway
from tests.support.pictures.pictures import PROVISIONING, READY
from tests.support.rows.deployments import EMPTIED, make_deployment, write
from tests.support.rows.hosts import up

usefixtures = pytest.mark.usefixtures("servers")


def reached_by_default(engine: Engine, name: str = "web") -> None:
    for entrance in default_entrances(name):
        write(
            engine,
            "INSERT INTO entrances (kind, value, deployment_id) SELECT %s, %s, id FROM deployments WHERE name = %s",
            entrance.kind.value,
            entrance.value,
            name,
        )


def rows(said: str) -> list[list[str]]:
    return [line.split() for line in said.splitlines()]


@usefixtures
def test_traffic_shows_what_proxies_are_told(rollway: Rollway, engine: Engine) -> None:
    assert "No deployments yet" in rollway("traffic").out
    make_deployment(engine, "■▲|□", status=PROVISIONING)
    make_deployment(engine, "", name="idle", status=READY)
    reached_by_default(engine)
    head, *found = rows(rollway("traffic").out)
    assert head == ["NAME", "TRAFFIC", "ADDRESS", "STATUS", "REVISION", "ROUTE", "REACHED", "AS"]
    assert [row[:4] for row in found[:2]] == [
        ["idle", "live", "-", "no"],
        ["web", "live", "127.0.0.1:1", "healthy"],
    ]
    assert found[1][6:] == ["web,", "web.localhost,", "/web/"]
    assert found[2][:2] == ["127.0.0.1:1", "unhealthy"]
    assert found[3][:3] == ["preview", "127.0.0.1:1", "healthy"]
    assert found[3][5:] == ["preview.web,", "preview.web.localhost,", "header", "x-rollway-preview"]


@usefixtures
def test_traffic_explains_where_a_request_goes(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■▲|□", status=PROVISIONING)
    reached_by_default(engine)
    with transaction(engine) as connection:
        begin_publishing(connection, "here")
        note_proxies(connection, [SeenProxy("edge-1", "envoy", 60.0)])
    told = rollway("traffic", "web", "--explain", "http://web.localhost:8080/x")
    assert told.code == 0
    for words in ("web.localhost is web's; its replicas see /x", "2 replicas, of which the 1 healthy", "edge-1"):
        assert words in told.out
    assert rollway("traffic", "--explain", "http://nobody.example.com/").code == 1
    assert rollway("traffic", "web", "--reset", "--explain", "http://web/").code == 2
    found = json.loads(rollway("traffic", "--explain", "http://preview.web/", "--json").out)
    assert (found["deployment"], len(found["replicas"])) == ("web", 1)


@usefixtures
def test_traffic_for_scripts_has_every_replica_and_every_fault(rollway: Rollway, engine: Engine) -> None:
    make_deployment(engine, "■■")
    reached_by_default(engine)
    write(engine, "UPDATE routes SET address = 'nowhere' WHERE id = (SELECT max(id::text)::uuid FROM routes)")
    told = json.loads(rollway("traffic", "--json").out)
    (web,) = told["services"]
    assert (web["name"], web["hosts"], web["prefixes"]) == (
        "web",
        ["web", "web.localhost"],
        [{"value": "/web/", "strip": True}],
    )
    assert [(live["ip"], live["port"], live["status"]) for live in web["live"]] == [("127.0.0.1", 1, "healthy")]
    assert "is not ip:port" in told["faults"][0]
    assert "is not ip:port" in rollway("traffic").out


@usefixtures
def test_proxies_are_shown_live_or_silent_with_what_they_hold_up(rollway: Rollway, engine: Engine) -> None:
    assert "No proxy is known" in rollway("proxies").out
    with transaction(engine) as connection:
        begin_publishing(connection, "here")
        note_proxies(connection, [SeenProxy("edge-1", "envoy", 60.0), SeenProxy("edge-2", "traefik", 60.0)])
        note_acks(connection, [Ack("edge-1", "v17", "1:1:")])
    write(engine, "UPDATE proxies SET last_seen_at = last_seen_at - interval '1 hour' WHERE node_id = 'edge-2'")
    head, first, second = rows(rollway("proxies").out)
    assert head == ["NODE", "KIND", "STATE", "ACKNOWLEDGED", "WHEN", "SEEN", "DRAINS"]
    assert first[:4] == ["edge-1", "envoy", "live", "v17"]
    assert second[:6] == ["edge-2", "traefik", "silent", "-", "-", "1"]
    assert second[-1] == "0"
    told = json.loads(rollway("proxies", "--json").out)
    assert [(proxy["node_id"], proxy["is_live"]) for proxy in told] == [("edge-1", True), ("edge-2", False)]
    with transaction(engine) as connection:
        note_proxies(connection, [SeenProxy("edge-1", "envoy", 60.0, is_doubled=True)])
    assert "two with this id" in rollway("proxies").out


@usefixtures
def test_hosts_are_shown_up_or_down_with_their_replicas(rollway: Rollway, engine: Engine) -> None:
    assert "No host is known yet" in rollway("hosts").out
    make_deployment(engine, "■■▲")  # on the host "here"
    with transaction(engine) as connection:
        show_sign_of_life(connection, "here", "10.0.0.1")
        show_sign_of_life(connection, "there", "10.0.0.2")
    write(engine, "UPDATE hosts SET down_since = now() - interval '5 minutes' WHERE name = 'there'")
    said = rollway("hosts").out
    _, first, second = rows(said)
    assert first[:5] == ["here", "10.0.0.1", "-", "-", "up"]
    assert "2 healthy, 1 unhealthy" in said
    assert second[:8] == ["there", "10.0.0.2", "-", "-", "down", "for", "5", "min"]
    assert second[-1] == "none"
    told = json.loads(rollway("hosts", "--json").out)
    assert [(deployment["name"], deployment["state"], deployment["replicas"]) for deployment in told] == [
        ("here", "up", {"healthy": 2, "unhealthy": 1}),
        ("there", "down", {}),
    ]


@usefixtures
def test_a_host_that_is_down_can_be_forgotten(rollway: Rollway, engine: Engine) -> None:
    with transaction(engine) as connection:
        show_sign_of_life(connection, "rack-7", "10.0.0.1")
    refused = rollway("forget-host", "rack-7")
    assert (refused.code, refused.err) == (1, "host rack-7 is up; only a host that is down can be forgotten.\n")
    write(engine, "UPDATE hosts SET down_since = now()")
    assert rollway("forget-host", "rack-7").out == "rack-7 is forgotten\n"
    assert "there is no host rack-7" in rollway("forget-host", "rack-7").err
    assert "No host is known yet" in rollway("hosts").out


@usefixtures
def test_a_host_is_drained_by_somebody_until_it_is_undrained(rollway: Rollway, engine: Engine) -> None:
    assert rollway("drain-host", "rack-7").err == "there is no host rack-7; 'rollway hosts' lists those that exist.\n"
    up(engine, EMPTIED)
    make_deployment(engine, "▣▣")
    said = f"{EMPTIED} is drained, with replicas of 1 deployment; no other host takes web, so these stay\n"
    assert rollway("drain-host", EMPTIED, "--actor", "ada").out == said
    shown = rollway("hosts").out
    assert re.search(r"up, drained by ada \d+ s ago", shown)
    assert shown.endswith(f"web is on {EMPTIED} until another host takes it.\n")
    up(engine, "rack-7")
    assert rollway("drain-host", EMPTIED).out == f"{EMPTIED} is drained, with replicas of 1 deployment\n"
    assert f"web is on {EMPTIED} until its replicas are up elsewhere." in rollway("hosts").out
    told = json.loads(rollway("hosts", "--json").out)
    assert [(host["name"], host["drained_by"], host["stays"]) for host in told] == [
        (EMPTIED, "ada", {"web": ""}),
        ("rack-7", None, {}),
    ]
    assert rollway("undrain-host", EMPTIED).out == f"{EMPTIED} takes replicas again\n"
    assert "drained" not in rollway("hosts").out


@usefixtures
def test_status_says_where_a_deployment_is_reached(rollway: Rollway, engine: Engine, tmp_path: Path) -> None:
    make_deployment(engine, "■■■")
    reached_by_default(engine)
    assert "reached    web, web.localhost, /web/" in rollway("status", "web").out
    assert json.loads(rollway("status", "web", "--json").out)["urls"] == []

    runs(Home(tmp_path / "home"), "http://127.0.0.1:8080")
    said = "http://web.localhost:8080/, http://127.0.0.1:8080/web/ (or with the host web, web.localhost)"
    assert f"reached    {said}" in rollway("status", "web").out
    shown = json.loads(rollway("status", "web", "--json").out)
    assert shown["urls"] == ["http://web.localhost:8080/", "http://127.0.0.1:8080/web/"]
    assert shown["entrances"][0] == {"kind": "host", "value": "web", "strip_prefix": True}


def runs(home: Home, envoy: str) -> None:
    """As if a stack with this Envoy ran: this process stands for its parts."""
    home.create()
    here = identify(os.getpid())
    assert here
    part = PartState(name="envoy", condition="running", process=here, address=envoy)
    write_state(home, StackState(supervisor=here, phase="running", database_url="", redis_url="", parts=(part,)))


def test_a_prefix_that_replicas_see_and_a_wildcard_are_told_as_they_are() -> None:
    entrances = (
        Entrance(EntranceKind.HOST, "*.localhost"),
        Entrance(EntranceKind.HOST, "example.com"),
        Entrance(EntranceKind.PREFIX, "/api/", strip_prefix=False),
    )
    reached = ReachedView(entrances, RequestRules(30.0))
    assert reached.urls("http://127.0.0.1:80") == ["http://127.0.0.1:80/api/"]
    assert reached_in_words(reached, "") == "*.localhost, example.com, /api/ (passed on), each request within 30 s"
    assert reached_in_words(ReachedView((), RequestRules()), "http://127.0.0.1:80") == "nowhere"
