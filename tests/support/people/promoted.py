"""A manual blue-green rollout, up to where green waits for a person and beyond."""

from sqlalchemy import Engine

from tests.support.pictures.pictures import READY
from tests.support.rows.deployments import Made, ask, make_deployment, snapshot, start_all
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet

MANUAL = {"strategy": "blue_green", "spec": {"auto_promote": False, "scale_down_delay_seconds": 600}}


def green_waits(engine: Engine) -> Made:
    """A rollout from v1 to v2, whose green set is complete."""
    made = make_deployment(engine, "■■■", policy=MANUAL, status=READY)
    coordinator = coordinator_without_redis(engine)
    ask(engine, "activate_revision", deployment="web", revision="v2")
    run_until_quiet(coordinator)
    start_all(engine)
    run_until_quiet(coordinator)
    return made


def promoted_to_v2(engine: Engine) -> None:
    """The rollout is completed, and blue is parked."""
    made = green_waits(engine)
    ask(engine, "promote", deployment="web")
    run_until_quiet(coordinator_without_redis(engine))
    assert snapshot(engine, made.id).current_revision_id == made.v2
