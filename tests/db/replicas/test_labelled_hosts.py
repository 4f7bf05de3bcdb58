"""Labels in Postgres: replicas are placed, moved and refused by them, and wait for them without holding up others."""

from functools import partial
from uuid import UUID

import pytest
from sqlalchemy import Engine

from db.audit.explanations import why_shown
from db.commands.apply.preview import applied_ahead
from db.connection.transactions import in_transaction
from db.due_work import open_work
from db.replicas.host_placement import MOST_AT_ONCE, Placing, Wanted, place_routes
from db.replicas.lost_hosts import fail_routes_that_wait_in_vain
from db.views.deployment_views import deployment_named
from db.views.fleet_views import all_hosts
from db.views.unplaced import UnplacedView, unplaced
from domain.commands.apply.document import Apply
from domain.model.states import RouteStatus
from domain.replicas.host_choice import hosts_by
from domain.revisions.host_labels import NoHostFitsError
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import EMPTIED, HERE, ask, make_deployment, read, write
from tests.support.rows.hosts import drain, go_deaf, go_down, says, up
from tests.support.rows.sent_statements import sent_by
from tests.support.workers.coordinators import coordinator_without_redis, handler_for

IN_A = {"command": ["serve"], "hosts": {"zone": "a"}}
LOSES_ITS_HOST = "UPDATE routes SET host = NULL, status = 'provisioning', started_at = NULL WHERE id = %s"
NEW = "SELECT host FROM routes WHERE rollout_id IS NOT NULL ORDER BY id"


def label(engine: Engine, host: str, **labels: str) -> None:
    says(engine, host, labels=labels)


def new_hosts(engine: Engine) -> list[str | None]:
    coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    return [row["host"] for row in read(engine, NEW)]


def stay(engine: Engine) -> object:
    return drain(engine, EMPTIED).result["stay"]


def test_a_new_replica_goes_where_the_label_is_and_nowhere_else(engine: Engine) -> None:
    up(engine, "a", "b", HERE)
    label(engine, "b", zone="a", disk="ssd")
    make_deployment(engine, "■■■|", status=PROVISIONING, spec=IN_A)
    assert new_hosts(engine) == ["b"]


def test_placing_by_labels_asks_no_further_question(engine: Engine) -> None:
    counts = list[int]()
    for name, spec in (("plain", {"command": ["serve"]}), ("near", {**IN_A, "spread": "zone"})):
        up(engine, "a", "b")
        label(engine, "b", zone="a")
        make_deployment(engine, "■■|", name=name, n=2, status=PROVISIONING, spec=spec)
        sent = sent_by(engine)
        coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
        counts.append(len(sent))
    assert counts[0] == counts[1]


def test_replicas_are_spread_over_the_values_of_a_label(engine: Engine) -> None:
    up(engine, "a1", "a2", "b1")
    for host in ("a1", "a2"):
        label(engine, host, zone="a")
    label(engine, "b1", zone="b")
    made = make_deployment(engine, "", n=0, spec={"command": ["serve"], "spread": "zone"})
    wanted = [Wanted(made.id, made.v2)] * 4
    assert hosts_by(in_transaction(engine, partial(Placing().grounds, replicas=wanted))) == ["a1", "b1", "a2", "b1"]


def waiting_for_a(engine: Engine) -> UUID:
    """A route that no host takes: the one with its label is down."""
    up(engine, HERE, "near")
    label(engine, "near", zone="a")
    go_down(engine, "near")
    up(engine, HERE)
    made = make_deployment(engine, "■◇■", spec=IN_A)
    write(engine, LOSES_ITS_HOST, made.routes[1])
    return made.routes[1]


def test_one_that_no_host_takes_waits_is_explained_and_is_placed_when_a_label_comes(engine: Engine) -> None:
    route_id = waiting_for_a(engine)
    assert in_transaction(engine, partial(place_routes, limit=MOST_AT_ONCE)) == 0
    why = "no host that is up has zone=a; near, with these labels, is down"
    view = in_transaction(engine, partial(deployment_named, name="web"))
    assert [route.reason for route in view.routes if route.id == route_id] == [why]
    assert in_transaction(engine, unplaced) == [UnplacedView("web", 1, why)]
    assert why in in_transaction(engine, partial(why_shown, name="web")).sentence
    label(engine, HERE, zone="a")
    assert in_transaction(engine, unplaced) == []
    assert in_transaction(engine, partial(place_routes, limit=MOST_AT_ONCE)) == 1
    assert read(engine, "SELECT host FROM routes WHERE id = %s", route_id) == [{"host": HERE}]


def test_one_that_waits_for_a_label_holds_up_nobody_and_keeps_no_worker_awake(engine: Engine) -> None:
    waiting_for_a(engine)
    assert not in_transaction(engine, open_work).is_unplaced
    other = make_deployment(engine, "◇", name="other", n=1)
    write(engine, LOSES_ITS_HOST, other.routes[0])
    assert in_transaction(engine, open_work).is_unplaced
    assert in_transaction(engine, partial(place_routes, limit=1)) == 1, "the other one, though it is younger"
    assert read(engine, "SELECT host FROM routes WHERE id = %s", other.routes[0]) == [{"host": HERE}]


def test_a_drained_host_is_left_only_for_one_with_the_labels(engine: Engine) -> None:
    up(engine, HERE, EMPTIED)
    label(engine, EMPTIED, zone="a")
    make_deployment(engine, "▣▣", n=2, spec=IN_A)
    assert stay(engine) == ["web"]
    (host,) = [host for host in in_transaction(engine, all_hosts) if host.name == EMPTIED]
    assert (host.stays, host.labels) == ({"web": "another host takes it"}, {"zone": "a"})
    label(engine, HERE, zone="a")
    assert stay(engine) == []


def test_on_a_deaf_host_one_waits_rather_than_to_be_made_again_where_no_other_has_its_labels(engine: Engine) -> None:
    up(engine, HERE, "other")
    make_deployment(engine, "◇", n=1, spec=IN_A)
    label(engine, HERE, zone="a")
    go_deaf(engine, HERE)
    fail = partial(fail_routes_that_wait_in_vain, limit=10)
    assert in_transaction(engine, fail) == frozenset()
    label(engine, "other", zone="a")
    assert len(in_transaction(engine, fail)) == 1
    assert read(engine, "SELECT status FROM routes") == [{"status": RouteStatus.FAILED}]


def test_a_revision_that_no_known_host_can_take_is_refused_and_one_of_a_host_that_is_down_is_not(
    engine: Engine,
) -> None:
    up(engine, HERE, "near")
    document = {"deployment": "web", "replicas": 1, "revision": {"name": "v1", **IN_A}}
    said = "hosts: no host can take v1: no host has the label zone; name labels that one host has, or give a host"
    with pytest.raises(NoHostFitsError, match=said):
        ask(engine, "apply", documents=[document])
    with pytest.raises(NoHostFitsError, match=said):
        in_transaction(engine, partial(applied_ahead, apply=Apply(request_id="r", documents=[document])))
    assert read(engine, "SELECT FROM revisions") == [], "nothing of it is kept"
    label(engine, "near", zone="a")
    go_down(engine, "near")
    ask(engine, "apply", documents=[document])
    assert read(engine, "SELECT name FROM revisions") == [{"name": "v1"}]


def test_a_way_back_is_not_refused(engine: Engine) -> None:
    up(engine, HERE)
    made = make_deployment(engine, "■■■|■", status=PROVISIONING, spec=IN_A)
    ask(engine, "undo", deployment="web")
    assert read(engine, "SELECT sub_step FROM deployments WHERE id = %s", made.id) == [{"sub_step": "rolling_back"}]
