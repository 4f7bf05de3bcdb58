"""Every right decision goes through."""

import random

import pytest
from sqlalchemy import Engine

from tests.support.rows.deployments import read
from tests.support.worlds.busy_fleet import busy_fleet


@pytest.mark.parametrize("seed", [1, 2])
def test_no_right_decision_is_refused_whatever_the_replicas_do(engine: Engine, seed: int) -> None:
    for _ in busy_fleet(engine, 6, random.Random(seed)):
        assert read(engine, "SELECT message FROM deployment_history WHERE result = 'error'") == []
    (counted,) = read(engine, "SELECT count(*) AS c FROM routes WHERE status = 'failed'")
    assert counted["c"] > 50


@pytest.mark.parametrize("cycles", [1, 3, 99])
def test_no_right_decision_is_refused(engine: Engine, cycles: int) -> None:
    for _ in busy_fleet(engine, cycles):
        assert read(engine, "SELECT message FROM deployment_history WHERE result = 'error'") == []
    ended = read(engine, "SELECT lifecycle, count(*) AS c FROM deployments GROUP BY 1 ORDER BY 1")
    assert ended == [{"lifecycle": "destroyed", "c": 7}, {"lifecycle": "ready", "c": 77}]
