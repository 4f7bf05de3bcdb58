"""Commands that prepare a host, by looks as a worker makes them."""

from typing import Any

import pytest
from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.preparations import begin_preparations
from domain.model.states import PREPARING
from tasks.redis.wake import Waker
from tasks.replicas.preparing import Preparations
from tests.support.rows.deployments import HERE, make_deployment, read
from tests.support.rows.hosts import has
from tests.support.stack.waiting import eventually
from tests.support.workers.replicas import Runtimes

SHOWS = "sh -c 'echo \"sees [$CUDA_VISIBLE_DEVICES], owns [$ROLLWAY_DEVICES]\"'"


def prepared(engine: Engine, runtimes: Runtimes, waker: Waker, spec: dict[str, Any]) -> str:
    """The last line of the command, once the host is prepared."""
    made = make_deployment(engine, "■■■|", status=PREPARING, spec=spec)
    with transaction(engine) as connection:
        begin_preparations(connection, [made.id])
    preparations = Preparations(engine, runtimes, waker, HERE)

    def words() -> str:
        preparations.look()
        rows = read(engine, "SELECT words FROM preparations WHERE state = 'done'")
        return str(rows[0]["words"]) if rows else ""

    return eventually(words, what="the host to be prepared")


def test_a_host_that_is_prepared_for_replicas_that_need_gpus_touches_none(
    engine: Engine, runtimes: Runtimes, waker: Waker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    has(engine, HERE, "gpu=2")
    spec = {"command": ["serve"], "prepare": {"command": SHOWS}}
    assert prepared(engine, runtimes, waker, {**spec, "needs": {"gpu": 1}}) == "sees [], owns []"


def test_one_for_others_sees_what_its_worker_sees(
    engine: Engine, runtimes: Runtimes, waker: Waker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    has(engine, HERE, "gpu=2")
    spec = {"command": ["serve"], "prepare": {"command": SHOWS}, "needs": {"fpga": 1}}
    assert prepared(engine, runtimes, waker, spec) == "sees [0,1], owns []"
