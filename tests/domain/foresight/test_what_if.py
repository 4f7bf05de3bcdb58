"""What would be decided of a snapshot that somebody writes down or supposes, and wrong ones refused by field."""

from datetime import timedelta
from typing import Any

import pytest

from domain.foresight.snapshot import AT, parse_snapshot
from domain.foresight.what_if import Supposing, supposed, what_if
from domain.model.deployment import TrafficStatus
from domain.model.hold import Hold
from domain.model.picture import picture
from domain.strategies import parse_policy
from domain.words.errors import InvalidInputError, NoRolloutError
from tests.support.pictures.pictures import NOW, READY, deploying, resting, rolling_back

OLD = {"rev": "old", "status": "healthy", "traffic": "active", "age_s": 12}
NEW = {**OLD, "rev": "new"}
SICK = {**OLD, "status": "unhealthy"}
GREEN = {**NEW, "traffic": "inactive"}
STARTING = {**NEW, "status": "provisioning"}
ROLLING = {"desired": 3, "strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 1}}
BLUE_GREEN = {"desired": 2, "strategy": "blue_green"}


@pytest.mark.parametrize(
    ("snapshot", "routes", "outcome", "create", "drain", "promote"),
    [
        (ROLLING, [OLD, OLD, OLD], "moves", 1, [0], []),
        (ROLLING, [OLD, OLD, SICK], "moves", 1, [2], []),
        (ROLLING, [OLD, OLD, STARTING], "waits", 0, [], []),
        (ROLLING, [NEW, NEW, NEW], "completed", 0, [], []),
        ({**ROLLING, "failed": 3}, [OLD, OLD], "goes_back", 0, [], []),
        ({**ROLLING, "started_s": 1801}, [OLD, OLD, STARTING], "goes_back", 0, [], []),
        ({**ROLLING, "paused": True}, [OLD, OLD, OLD], "waits_for_person", 0, [], []),
        ({**ROLLING, "phase": "rolling_back"}, [OLD, OLD, OLD], "rolled_back", 0, [], []),
        ({"desired": 2, "strategy": "recreate"}, [OLD, OLD], "moves", 0, [0, 1], []),
        (BLUE_GREEN, [OLD, OLD, GREEN, GREEN], "waits_for_person", 0, [], []),
        ({**BLUE_GREEN, "promote": True}, [OLD, OLD, GREEN, GREEN], "completed", 0, [0, 1], [2, 3]),
    ],
)
def test_the_shipped_decision_answers_by_the_places_of_the_routes(
    snapshot: dict[str, Any],
    routes: list[dict[str, Any]],
    outcome: str,
    create: int,
    drain: list[int],
    promote: list[int],
) -> None:
    answer = what_if(parse_snapshot({**snapshot, "routes": routes}), AT).as_json()
    assert answer.pop("why")
    assert answer == {"outcome": outcome, "create": create, "drain": drain, "promote": promote, "park": []}


def test_of_a_route_only_its_revision_and_its_status_must_be_known() -> None:
    routes = [{"rev": rev, "status": status} for rev, status in (("old", "terminating"), ("new", "healthy"))]
    old, new = parse_snapshot({**ROLLING, "routes": routes}).routes
    assert (old.traffic, new.traffic) == (TrafficStatus.INACTIVE, TrafficStatus.ACTIVE)
    assert {AT - old.status_changed_at, AT - new.status_changed_at} == {timedelta(hours=1)}


def test_other_is_another_revision_than_both() -> None:
    routes = [{"rev": rev, "status": "healthy"} for rev in ("old", "new", "other")]
    assert len({route.revision_id for route in parse_snapshot({**ROLLING, "routes": routes}).routes}) == 3


@pytest.mark.parametrize(
    ("wrong", "field", "sentence"),
    [
        ({"desired": -1}, "desired", "greater than or equal to 0"),
        ({"desired": "3"}, "desired", "desired"),
        ({"strategy": "a_b"}, "strategy", "strategy must be one of blue_green, canary, recreate, rolling_update"),
        ({"spec": {"max_surge": -1}}, "spec.max_surge", "spec.max_surge: must be a whole number"),
        ({"spec": {"surge": 1}}, "spec.surge", "max_surge"),
        ({"limits": {"timeout_seconds": 0}}, "limits.timeout_seconds", "limits.timeout_seconds"),
        ({"routes": [{**OLD, "rev": "blue"}]}, "routes.0.rev", "'old', 'new' or 'other'"),
        ({"routes": [OLD, {**OLD, "status": "failed"}]}, "routes.1.status", "'provisioning', 'healthy'"),
        ({"routes": [{**OLD, "age_s": -1}]}, "routes.0.age_s", "greater than or equal to 0"),
        ({"routes": [{**OLD, "age_s": float("nan")}]}, "routes.0.age_s", "routes.0.age_s"),
        ({"routes": [{**OLD, "id": 1}]}, "routes.0.id", "routes.0.id"),
        ({"routes": {}}, "routes", "routes"),
        ({"size": 3}, "size", "size"),
    ],
)
def test_a_wrong_snapshot_is_refused_naming_the_field(wrong: dict[str, Any], field: str, sentence: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse_snapshot({**ROLLING, "routes": [OLD], **wrong})
    assert refused.value.detail["field"] == field
    assert sentence in refused.value.message


def looked_at(policy: dict[str, Any], **more: Any) -> str:
    """What a canary at its first weight, of which every proxy has known for 5 s, comes to."""
    rollout = {"stage": 1, "weight": 500, "weight_known_at": NOW - timedelta(seconds=5)}
    policy = {"strategy": "canary", "spec": {"steps": ["5%"], **policy}}
    return what_if(deploying("■■■|■", policy=parse_policy(policy), rollout=rollout, **more), NOW).outcome


def test_a_canary_that_goes_on_by_itself_waits_for_nobody() -> None:
    timed = {"steps": [{"weight": "5%", "seconds": 60}]}
    assert looked_at({}) == looked_at({"judge": {"dry_run": True}}) == "waits_for_person"
    assert looked_at(timed) == looked_at({"judge": {}}) == "waits"
    assert looked_at(timed, paused_at=NOW) == "waits_for_person"
    assert looked_at({"judge": {"at_most": {"seconds": 5}}}) == "waits_for_person"
    assert looked_at({}, hold=Hold("held", NOW + timedelta(minutes=1))) == "waits"


@pytest.mark.parametrize("raw", [None, 3, [], "snapshot", {}])
def test_what_is_no_snapshot_at_all_is_refused(raw: object) -> None:
    with pytest.raises(InvalidInputError):
        parse_snapshot(raw)


@pytest.mark.parametrize(
    ("drawn", "supposing", "before", "outcome", "why"),
    [
        ("■■|■", Supposing(), "■■|■", "moves", "creating 1 new (3 live + 1 ≤ 4), draining 1 (at least 2 of 3 stay)"),
        (
            "■■|■",
            Supposing(spec={"max_surge": 3}),
            "■■|■",
            "moves",
            "creating 2 new (3 live + 2 ≤ 6), draining 1 (at least 2 of 3 stay)",
        ),
        ("■■|■", Supposing(desired=5), "■■|■", "moves", "creating 3 new (3 live + 3 ≤ 6)"),
        (
            "■■|◇",
            Supposing(failures=1),
            "■■|",
            "waits",
            "waiting: 1 start failed; the next one is tried in 2 s",
        ),
        (
            "■■|◇■",
            Supposing(failures=2),
            "■■|",
            "waits",
            "waiting: 2 starts failed in a row; the next one is tried in 4 s",
        ),
        ("■■|◇", Supposing(failures=3), "■■|", "goes_back", "3 new replicas failed, the limit is 3"),
        ("■■■|", Supposing(strategy="recreate"), "■■■|", "moves", "draining 3 old"),
    ],
)
def test_other_budgets_failures_counts_and_strategies_are_supposed(
    drawn: str, supposing: Supposing, before: str, outcome: str, why: str
) -> None:
    deployment = supposed(deploying(drawn), supposing, NOW)
    answer = what_if(deployment, NOW)
    assert picture(deployment.routes, deployment.current_revision_id, deployment.deploying_revision_id) == before
    assert (answer.outcome, answer.why.partition("; last:")[0]) == (outcome, why)


def test_settings_that_make_no_sense_are_refused_as_in_a_policy() -> None:
    with pytest.raises(InvalidInputError, match="max_surge"):
        supposed(deploying("■■■|"), Supposing(spec={"max_surge": "many"}), NOW)


def test_outside_of_a_rollout_only_the_count_can_be_supposed() -> None:
    assert what_if(supposed(resting("■■■", status=READY), Supposing(desired=4), NOW), NOW).outcome == "moves"
    with pytest.raises(NoRolloutError):
        supposed(resting("■■■", status=READY), Supposing(failures=1), NOW)
    assert what_if(rolling_back("■■■|"), NOW).outcome == "rolled_back"
