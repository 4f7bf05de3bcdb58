from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
import redis
from sqlalchemy import Engine

from runtime.external_runtime import ExternalRuntime
from runtime.probing.probes import Prober
from runtime.protocol import Runtime
from tasks.redis.wake import Waker
from tasks.replicas.host_replicas import HostReplicas
from tasks.replicas.liveness import Silences
from tasks.replicas.probing import ProbePass
from tasks.replicas.warming import Warmer
from tests.support.rows.deployments import HERE
from tests.support.workers.cold_model import Model, modelling
from tests.support.workers.probing import Looks, Service, serving
from tests.support.workers.replicas import Runtimes


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as made:
        yield made


@pytest.fixture
def prober() -> Iterator[Prober]:
    with closing(Prober()) as made:
        yield made


@pytest.fixture
def make_pass(engine: Engine, waker: Waker, redis_client: redis.Redis, prober: Prober) -> Looks:
    """A pass like any other: it shares what its worker process has for all of them."""
    external, silences = ExternalRuntime(lambda *_: None), Silences()

    def make(
        runtimes: dict[str, Runtime] | None = None, prober: Prober = prober, client: redis.Redis = redis_client
    ) -> ProbePass:
        return ProbePass(
            engine, runtimes or {"external": external}, waker, client, HERE, prober, silences, timedelta(seconds=5)
        )

    return make


@pytest.fixture
def host_replicas(engine: Engine, runtimes: Runtimes, waker: Waker) -> HostReplicas:
    return HostReplicas(engine, runtimes, waker, HERE, timedelta(seconds=5))


@pytest.fixture
def model() -> Iterator[Model]:
    with modelling() as made:
        yield made


@pytest.fixture
def warmer(engine: Engine, redis_client: redis.Redis) -> Iterator[Warmer]:
    with closing(Warmer(engine, redis_client)) as made:
        yield made


@pytest.fixture
def make_warm_pass(make_pass: Looks, warmer: Warmer) -> Looks:
    def make(*given: Any, warmer: Warmer = warmer) -> ProbePass:
        made = make_pass(*given)
        made.warmer = warmer
        return made

    return make
