"""What a process counts: decisions with what they moved and how late they were, wakes and locks."""

import redis
from sqlalchemy import Engine

from tasks.redis.locks import Slots
from tasks.redis.wake import Waker
from tasks.telemetry.task_metrics import REGISTRY
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import NOBODY, make_deployment, write
from tests.support.workers.coordinators import coordinator_without_redis, handler_for


def value(name: str, **labels: str) -> float:
    """The value of a sample; 0 for one that was never counted."""
    return REGISTRY.get_sample_value(name, labels) or 0


def test_a_wave_is_counted_with_what_it_moved_and_how_late_it_was(engine: Engine) -> None:
    make_deployment(engine, "■■■|", status=PROVISIONING)
    write(engine, "UPDATE deployments SET due_at = clock_timestamp() - interval '20 seconds'")
    handler = handler_for(PROVISIONING)
    verdict = {"handler": handler.name, "verdict": "need_retry"}

    def counted() -> tuple[float, ...]:
        return (
            value("rollway_waves_total", handler=handler.name),
            value("rollway_routes_created_total"),
            value("rollway_decisions_total", **verdict),
            value("rollway_decision_latency_seconds_bucket", handler=handler.name, le="30.0"),
        )

    before, late = counted(), value("rollway_decision_latency_seconds_bucket", handler=handler.name, le="10.0")
    coordinator_without_redis(engine).process_chunk(handler)
    created = counted()[1] - before[1]
    assert created >= 1
    assert [now - then for now, then in zip(counted(), before, strict=True)] == [1, created, 1, 1]
    assert value("rollway_decision_latency_seconds_bucket", handler=handler.name, le="10.0") == late


def test_a_chunk_that_finds_nothing_is_not_counted(engine: Engine) -> None:
    handler = handler_for(PROVISIONING)
    before = value("rollway_chunk_seconds_count", handler=handler.name)
    coordinator_without_redis(engine).process_chunk(handler)
    assert value("rollway_chunk_seconds_count", handler=handler.name) == before


def test_a_wake_that_redis_does_not_take_is_counted() -> None:
    before = value("rollway_wakes_lost_total")
    Waker(redis.Redis.from_url(NOBODY)).send(["scaling"])
    assert value("rollway_wakes_lost_total") == before + 1


def test_an_event_without_a_slot_is_counted_by_its_lock_and_not_by_its_host(redis_client: redis.Redis) -> None:
    slots, others = (Slots(redis_client, 1, 5, lambda _: None) for _ in range(2))
    before = value("rollway_locks_contended_total", lock="routes/start")
    with slots.hold("routes/start@gpu-2", "routes/start@gpu-2") as held, others.hold("routes/start@gpu-2", "x") as slot:
        assert held is not None
        assert slot is None
    assert value("rollway_locks_contended_total", lock="routes/start") == before + 1
