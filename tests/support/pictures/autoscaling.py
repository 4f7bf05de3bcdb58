"""Deployments with autoscaling rules, and values pushed for them."""

from typing import Any

from sqlalchemy import Engine

from domain.handlers.check_replica import CheckReplicaHandler
from tests.support.rows.deployments import Made, ask, make_deployment, read, write
from tests.support.workers.coordinators import coordinator_without_redis

UP: dict[str, Any] = {
    "metric": "queue",
    "source": "pushed",
    "comparator": ">",
    "threshold": 30,
    "step": 2,
    "max_replicas": 8,
}
DOWN: dict[str, Any] = {**UP, "comparator": "<", "threshold": 5, "step": -1}
SCRAPED: dict[str, Any] = {**UP, "source": "replicas", "metric": "busy", "aggregate": "max", "labels": {"q": "gpu"}}


def ruled(engine: Engine, *rules: dict[str, Any], picture: str = "■■■", name: str = "web", **details: Any) -> Made:
    """A deployment with rules, looked at once."""
    made = make_deployment(engine, picture, name=name, **details)
    ask(engine, "set_autoscaling_rules", deployment=name, rules=list(rules))
    write(engine, "UPDATE deployments SET due_at = NULL WHERE id = %s", made.id)
    return made


def push(engine: Engine, value: float, metric: str = "queue", **more: Any) -> dict[str, Any]:
    return ask(engine, "push_metric", deployment="web", metric=metric, value=value, **more).result


def check(engine: Engine) -> int:
    return coordinator_without_redis(engine).process_chunk(CheckReplicaHandler()).looked_at


def is_marked(engine: Engine) -> bool:
    return bool(read(engine, "SELECT 1 FROM deployments WHERE due_at <= clock_timestamp()"))


def scaled_before(engine: Engine, seconds: float) -> None:
    write(
        engine,
        "UPDATE deployments SET last_autoscaled_at = clock_timestamp() - %s * interval '1 second'",
        float(seconds),
    )
