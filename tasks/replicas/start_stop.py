"""The work of a worker for the replicas of one host, until its runtimes show what Postgres says."""

from collections.abc import Mapping
from datetime import timedelta
from functools import partial

import structlog
from sqlalchemy import Engine

from db.connection.engine import in_transaction
from db.replicas.routes import expected_on
from runtime.host_secrets import NO_SECRETS, HostSecrets
from runtime.process.termination import end
from runtime.protocol import Runtime
from tasks.redis.wake import Waker
from tasks.replicas.starts import Starts
from tasks.replicas.stops import Stops

STRANGERS_AT_ONCE = 3
STRANGERS_GRACE_SECONDS = 5.0
"""For replicas whose routes the database has never heard of, as after an older backup was restored: they may serve."""
_log = structlog.get_logger(__name__)


class HostReplicas:
    """Starts, stops and sweeps the replicas of the host `name`.

    `drain_deadline`: how long proxies may take to acknowledge a drain. `secrets`: what replicas may refer to.
    """

    def __init__(  # noqa: PLR0913  (what a worker is composed of, each by its name)
        self,
        engine: Engine,
        runtimes: Mapping[str, Runtime],
        waker: Waker,
        name: str,
        drain_deadline: timedelta,
        secrets: HostSecrets = NO_SECRETS,
    ) -> None:
        self._engine = engine
        self._runtimes = runtimes
        self._name = name
        self.start = Starts(engine, runtimes, waker, name, secrets).look
        self.stop = Stops(engine, runtimes, waker, name, drain_deadline).look

    def sweep(self) -> bool:
        """End replicas that no route expects here any more, and forget those that have ended."""
        for name, runtime in self._runtimes.items():
            try:
                self._sweep(name, runtime)
            except OSError as error:  # on most hosts: there is no Docker engine, and so nothing to sweep
                _log.debug("replicas not swept; tried again at the next look", runtime=name, why=str(error))
        return False

    def _sweep(self, name: str, runtime: Runtime) -> None:
        replicas = runtime.everyone()
        ids = [replica.route_id for replica in replicas]
        expected = in_transaction(self._engine, partial(expected_on, host=self._name, route_ids=ids))
        for replica in replicas:
            if expected.get(replica.route_id):
                continue
            if not replica.running:
                runtime.forget(replica.route_id)
            elif replica.route_id in expected:
                _log.warning("a replica that no route expects is ended", runtime=name, route=str(replica.route_id))
                runtime.kill(replica.route_id)
        strangers = [replica.route_id for replica in replicas if replica.running and replica.route_id not in expected]
        if strangers:
            _log.warning("replicas of unknown routes are asked to end", runtime=name, routes=list(map(str, strangers)))
            end(runtime, strangers[:STRANGERS_AT_ONCE], STRANGERS_GRACE_SECONDS)
