"""What a plan is read from: a deployment as an activation would leave it, or as it stands."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from psycopg import Connection
from sqlalchemy import Engine

from db.commands.dry_run import dry_run
from db.connection.transactions import in_transaction
from db.views.deployment_views import deployment_named
from db.views.planning_views import foreseeable, learned_of, planned_activation, planned_rest, revision_ahead
from db.views.timeline import RevisionAhead, revision_named
from domain.commands.rollout_commands import ActivateRevision
from domain.model.preparation import Preparation, PreparationState
from domain.planning.plan_input import Planned
from domain.planning.replica_timings import Timings
from domain.text.errors import DeploymentNotFoundError, RevisionNotFoundError
from tests.support.pictures.pictures import PENDING, PROVISIONING
from tests.support.rows.deployments import SPEC, Made, ask, make_deployment, read, write
from tests.support.rows.hosts import has, up
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet

CHECKED: Mapping[str, Any] = {**SPEC, "health_check": {"path": "/health"}}
EXTERNAL: Mapping[str, Any] = {"runtime": "external", "external": {"template": "gpu"}}


def activated(connection: Connection, revision: str) -> Planned:
    view = deployment_named(connection, "web")
    found = revision_named(connection, view.id, revision)
    return planned_activation(view, foreseeable(connection, view), found, revision)


def of_v2(engine: Engine) -> Planned:
    return in_transaction(engine, lambda connection: activated(connection, "v2"))


def as_it_stands(engine: Engine) -> Planned:
    def read(connection: Connection) -> Planned:
        view = deployment_named(connection, "web")
        runs = view.deploying_revision or view.current_revision or ""
        return planned_rest(foreseeable(connection, view), revision_named(connection, view.id, runs))

    return in_transaction(engine, read)


@pytest.mark.parametrize(("spec", "checked"), [(SPEC, False), (CHECKED, True), (EXTERNAL, True)])
def test_an_activation_is_planned_from_what_it_would_leave(
    engine: Engine, spec: Mapping[str, Any], *, checked: bool
) -> None:
    made = make_deployment(engine, "■■■", spec=spec)
    planned = of_v2(engine)
    deployment = planned.subject.deployment
    assert (deployment.status, deployment.deploying_revision_id) == (PROVISIONING, made.v2)
    assert planned.subject.has_health_check is checked


@pytest.mark.parametrize("drawn", ["■■■", "|■■■"])
def test_what_is_at_rest_is_planned_as_it_stands(engine: Engine, drawn: str) -> None:
    make_deployment(engine, drawn)
    planned = as_it_stands(engine)
    assert planned.subject.deployment.deploying_revision_id is None
    assert len(planned.subject.deployment.routes) == 3


def test_the_rest_of_a_rollout_is_planned_from_where_it_is(engine: Engine) -> None:
    made = make_deployment(engine, "■|■◇", status=PROVISIONING)
    planned = as_it_stands(engine)
    assert planned.subject.deployment.deploying_revision_id == made.v2
    assert not planned.subject.has_health_check


def test_of_a_deployment_without_a_revision_there_is_none_to_check(engine: Engine) -> None:
    make_deployment(engine, "", status=PENDING)
    planned = as_it_stands(engine)
    assert planned.subject.has_health_check


def test_what_there_is_not_is_told_with_what_lists_those_that_are(engine: Engine) -> None:
    with pytest.raises(DeploymentNotFoundError, match="no deployment called web"):
        of_v2(engine)
    make_deployment(engine)
    with pytest.raises(RevisionNotFoundError, match="web has no revision v9; 'rollway status web' lists them"):
        in_transaction(engine, lambda connection: activated(connection, "v9"))


def test_mistakes_of_revisions_that_never_came_up_are_counted_apart(engine: Engine) -> None:
    made = make_deployment(engine, "■■|✗", status=PROVISIONING)
    write(engine, "UPDATE routes SET healthy_at = created_at + interval '2 seconds' WHERE status = 'healthy'")
    learned = learned_in(engine, made)
    assert (len(learned.starts), learned.failed_starts, learned.failure_rate) == (2, 0, 0)
    assert (learned.never_up, learned.revisions) == (1, 2)
    write(engine, "UPDATE routes SET revision_id = (SELECT current_revision_id FROM deployments)")
    learned = learned_in(engine, made)
    assert (learned.failed_starts, learned.never_up, learned.revisions) == (1, 0, 1)


def learned_in(engine: Engine, made: Made) -> Timings:
    return in_transaction(engine, partial(learned_of, deployment_id=made.id))


def test_how_long_hosts_took_to_be_prepared_is_learned_and_is_no_wake(engine: Engine) -> None:
    made = make_deployment(engine, "■■■", spec={**SPEC, "prepare": {"command": ["fetch"]}})
    write(
        engine,
        """
        INSERT INTO preparations (revision_id, deployment_id, host, state, started_at, ended_at)
        SELECT current_revision_id, id, 'a', 'done', now() - interval '90 s', now() - interval '30 s' FROM deployments
        UNION ALL SELECT current_revision_id, id, 'b', 'failed', now() - interval '9 s', now() FROM deployments
        """,
    )
    up(engine, "a", "b")
    ask(engine, "activate_revision", deployment="web", revision="v2")
    write(engine, "UPDATE rollouts SET started_at = started_at - interval '1 hour'")
    write(engine, "UPDATE deployments SET desired_replicas = 0")
    run_until_quiet(coordinator_without_redis(engine))
    phases = [row["phase"] for row in read(engine, "SELECT phase FROM rollout_steps ORDER BY step_no")]
    assert phases[0] == "deploying_preparing"
    write(engine, "UPDATE rollouts SET ended_at = now(), outcome = 'completed' WHERE outcome IS NULL")
    learned = learned_in(engine, made)
    assert (learned.preparations, learned.wakes) == ((60.0,), ())


def test_a_revision_that_is_shown_says_what_it_would_find_on_hosts(engine: Engine) -> None:
    has(engine, "a", "gpu=1")
    up(engine, "b")
    spec = {**SPEC, "needs": {"gpu": 1}, "prepare": {"command": ["fetch"]}}
    make_deployment(engine, "", n=1, status=PENDING)
    ask(engine, "add_revision", deployment="web", name="v3", spec=spec)
    ahead = ahead_of(engine, "v3")
    assert ahead is not None
    assert (ahead.room, ahead.refusal) == (1, "")
    assert ahead.preparations == (
        Preparation("a", PreparationState.WAITING),
        Preparation("b", PreparationState.WAITING),
    )
    write(engine, "UPDATE deployments SET desired_replicas = 2")
    refused = ahead_of(engine, "v3")
    assert refused is not None
    assert "web cannot move to v3: each replica needs a GPU, and all hosts have room for 1 of 2" in refused.refusal


def ahead_of(engine: Engine, revision: str) -> RevisionAhead | None:
    def read(connection: Connection) -> RevisionAhead | None:
        view = deployment_named(connection, "web")
        found = revision_named(connection, view.id, revision)
        assert found is not None
        return revision_ahead(connection, view, found)

    return in_transaction(engine, read)


def test_a_command_is_foretold_with_the_hosts_that_it_prepares(engine: Engine) -> None:
    up(engine, "a", "b")
    make_deployment(engine, "■■■", spec={**SPEC, "prepare": {"command": ["fetch"]}})
    command = ActivateRevision(request_id="r", deployment="web", revision="v2")
    planned = in_transaction(engine, partial(dry_run, command=command))
    assert [each.host for each in planned.subject.deployment.preparations] == ["a", "b"]
