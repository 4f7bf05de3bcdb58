"""The log: a line for each decision that changed something; lines of a task have its id."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from celery.signals import task_postrun, task_prerun
from sqlalchemy import Engine
from structlog.testing import capture_logs

import tasks.app  # noqa: F401  (its signals)
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import make_deployment
from tests.support.workers.coordinators import coordinator_without_redis, handler_for

LOGGER = "tasks.cycle.decision_log"


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[list[Any]]:
    caplog.set_level(logging.DEBUG, logger=LOGGER)
    with capture_logs() as captured:
        yield captured


def test_a_changing_decision_is_told_with_what_it_is_of_and_what_it_did(engine: Engine, lines: list[Any]) -> None:
    made = make_deployment(engine, "■■■|", status=PROVISIONING)
    coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    decided, chunk = lines
    assert decided == {
        "event": "decided",
        "log_level": "info",
        "handler": "deploying_provisioning",
        "deployment": "web",
        "revision": "v2",
        "rollout": str(made.rollout_id),
        "step": 1,
        "verdict": "need_retry",
        "from": "deploying/provisioning",
        "to": "deploying/provisioning",
        "created": 1,
        "promoted": 0,
        "drained": 1,
        "reason": decided["reason"],
    }
    assert decided["reason"].startswith("creating 1 new")
    assert chunk.pop("milliseconds") > 0
    assert chunk == {
        "event": "chunk",
        "log_level": "debug",
        "handler": "deploying_provisioning",
        "seen": 1,
        "successes": 0,
        "need_retry": 1,
        "skipped": 0,
        "errors": 0,
    }


def test_of_waits_only_the_chunk_is_told_and_to_those_who_debug(engine: Engine, lines: list[Any]) -> None:
    for number in range(3):
        make_deployment(engine, "■■|◇", name=f"web-{number}", status=PROVISIONING)
    coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    (chunk,) = lines
    assert (chunk["event"], chunk["log_level"], chunk["seen"], chunk["skipped"]) == ("chunk", "debug", 3, 3)


def test_when_nothing_is_due_nothing_is_told(engine: Engine, lines: list[Any]) -> None:
    coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert lines == []


def test_nothing_is_told_below_the_level_that_is_listened_to(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger=LOGGER)
    make_deployment(engine, "■■■|", status=PROVISIONING)
    with capture_logs() as captured:
        coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert captured == []


def test_lines_of_a_task_have_its_id_until_it_ends() -> None:
    task_prerun.send(sender=None, task_id="42")
    assert structlog.contextvars.get_contextvars() == {"task_id": "42"}
    task_postrun.send(sender=None, task_id="42")
    assert structlog.contextvars.get_contextvars() == {}
