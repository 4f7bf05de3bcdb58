"""Files that are applied to a stored deployment, and the world that its rollouts wait for."""

from typing import Any

from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.cycle.applier import StrategyApplyResult
from db.proxies.traffic_reader import read_traffic
from db.replicas.host_routes import record_stopped
from domain.traffic.snapshot import DeploymentInTraffic
from tests.support.pictures.policies import BLUE_GREEN, CANARY
from tests.support.rows.deployments import ROLLING, Made, ask, mark, read, snapshot, start_all, write
from tests.support.workers.coordinators import coordinator_without_redis, handler_for

RECREATE = {"strategy": "recreate", "spec": {}}
STRATEGIES = {"rolling_update": ROLLING, "recreate": RECREATE, "blue_green": BLUE_GREEN, "canary": CANARY}


def file(revision: str, **more: object) -> dict[str, Any]:
    return {"deployment": "web", "revision": {"name": revision, "command": "sleep 60"}, **more}


def apply(engine: Engine, document: dict[str, Any], **how: object) -> list[str]:
    (applied,) = ask(engine, "apply", documents=[document], **how).result["documents"]
    return list(applied["done"])


def table(engine: Engine) -> DeploymentInTraffic:
    with transaction(engine) as connection:
        return next(each for each in read_traffic(connection).deployments if each.name == "web")


def snapshot_size(engine: Engine) -> int:
    (row,) = read(engine, "SELECT desired_replicas FROM deployments WHERE name = 'web'")
    return int(row["desired_replicas"])


def go_on(engine: Engine, made: Made, until: str) -> None:
    """Cycles, starts and promotions, until the rollout has come this far."""
    for _ in range(100):
        if stage_of(engine, made) == until:
            return
        look(engine, made)
    raise AssertionError(stage_of(engine, made))


def look(engine: Engine, made: Made) -> None:
    """One look; where that changes nothing, the world and people do what it waits for."""
    known = "UPDATE rollouts SET weight_known_at = clock_timestamp() - interval '1 hour' WHERE weight IS NOT NULL"
    write(engine, known)
    mark(engine, made.id)
    status = snapshot(engine, made.id).status
    if coordinator_without_redis(engine).process_chunk(handler_for(status)).applied != StrategyApplyResult():
        return
    start_all(engine)
    stopping = read(engine, "SELECT id FROM routes WHERE status = 'terminating' AND stopped_at IS NULL")
    with transaction(engine) as connection:
        record_stopped(connection, [row["id"] for row in stopping])
    if read(engine, "SELECT FROM deployments WHERE waits_for = 'promote'"):
        ask(engine, "promote", deployment="web")


def settle(engine: Engine, made: Made) -> None:
    """As many replicas as are wanted."""
    for _ in range(20):
        look(engine, made)
        serving = [route for route in snapshot(engine, made.id).active_routes if route.is_serving]
        if len(serving) == len(snapshot(engine, made.id).active_routes) == snapshot_size(engine):
            return
    raise AssertionError(len(serving))


def stage_of(engine: Engine, made: Made) -> str:
    deployment = snapshot(engine, made.id)
    if deployment.rollout is None:
        return "ended"
    canary, new = deployment.rollout.canary, deployment.deploying_revision_id
    is_met = any(route.is_serving and route.revision_id == new for route in deployment.routes)
    return "met" if is_met and (canary is None or canary.weight != 0) else "begun"
