"""A deployment is said to fail while what it runs, or rolls out, does not start."""

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.views.deployment_views import deployment_named
from domain.model.picture import Standing
from tests.support.pictures.pictures import PROVISIONING, READY
from tests.support.rows.deployments import complete, make_deployment, write

FAILED = "UPDATE deployments SET failed_starts = 3, last_failed_at = now(), failed_revision_id = %s"


@pytest.mark.parametrize(
    ("drawn", "failed", "stands"),
    [
        ("■■■", "v1", Standing("ready, failing", "bad")),
        ("■■■", "v2", Standing("ready", "good")),  # it was taken back
        ("■■|◇", "v2", Standing("deploying, failing", "bad")),
    ],
)
def test_what_was_taken_back_fails_no_more(engine: Engine, drawn: str, failed: str, stands: Standing) -> None:
    made = make_deployment(engine, drawn, status=PROVISIONING if "|" in drawn else READY)
    write(engine, FAILED, getattr(made, failed))
    view = in_transaction(engine, lambda connection: deployment_named(connection, made.name))
    assert view.standing == stands


def test_a_rollback_is_told_for_an_hour_and_until_another_rollout_has_ended(engine: Engine) -> None:
    made = make_deployment(engine, "■■■|◇", status=PROVISIONING)

    def told() -> tuple[str, str] | None:
        view = in_transaction(engine, lambda connection: deployment_named(connection, made.name))
        return (view.rolled_back.revision, view.rolled_back.reason) if view.rolled_back else None

    assert told() is None, "under way"
    complete(engine, made)
    assert told() is None
    back = """
        UPDATE rollouts SET outcome = 'rolled_back', back_reason = 'it failed',
               ended_at = clock_timestamp() - %s * interval '1 min'
    """
    for minutes, said in ((59, ("v2", "it failed")), (61, None)):
        write(engine, back, minutes)
        assert told() == said
