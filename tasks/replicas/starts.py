"""Starts the replicas of one host, each route at its own time: what cannot be started now holds up nobody else."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import structlog
from sqlalchemy import Engine

from db.connection.engine import in_transaction
from db.replicas.reports import RouteReport
from db.replicas.routes import PostponedStart, RouteRow, postpone_starts, routes_to_start
from db.replicas.secrets import note_fault
from domain.model.states import RouteStatus
from domain.replicas.events import RouteLifecycleType
from domain.replicas.trying import pause_after
from domain.revisions.secrets import references_of
from domain.words.text import storable
from runtime.base import Replica, ReplicaRequest, ReplicaStartError, Runtime
from runtime.secrets import NO_SECRETS, HostSecrets, UnreadSecretError
from tasks.redis.wake import Waker
from tasks.replicas.reporting import write_reports
from tasks.replicas.turns import Turns

AT_ONCE = 50
_log = structlog.get_logger(__name__)


@dataclass(eq=False, slots=True)
class Starts:
    """Starts what is to run on `host`."""

    engine: Engine
    runtimes: Mapping[str, Runtime]
    waker: Waker
    host: str
    secrets: HostSecrets = NO_SECRETS
    _turns: Turns[RouteReport | PostponedStart] = field(default_factory=Turns)

    def look(self) -> bool:
        """Start the replicas of new routes, some at a time. True while there may be more."""
        read = partial(routes_to_start, host=self.host, limit=AT_ONCE, but=self._turns.unanswered)
        routes = in_transaction(self.engine, read)
        ends = self._turns.ask(routes, self._start)
        postponed = [end for end in ends.values() if isinstance(end, PostponedStart)]
        if postponed:
            in_transaction(self.engine, partial(postpone_starts, postponed=postponed))
        reports = [end for end in ends.values() if isinstance(end, RouteReport)]
        if reports:
            write_reports(self.engine, self.waker, reports)
            self.waker.routes_on([self.host], RouteLifecycleType.PROBE)
        return len(routes) == AT_ONCE or self._turns.is_behind

    def _start(self, route: RouteRow) -> RouteReport | PostponedStart:
        """Start one replica and report it, or say why its runtime gave no answer."""
        failed = partial(RouteReport, route.id, route.deployment_id, route.status, RouteStatus.FAILED)
        if route.unreadable is not None:
            return failed(reason=route.unreadable)
        try:
            replica = self._running(request_of(route))
        except UnreadSecretError as error:  # noted first: what replaces it shall be placed elsewhere
            note = partial(note_fault, deployment=route.deployment, reference=error.reference, fault=error.fault)
            in_transaction(self.engine, partial(note, host=self.host))
            return failed(reason=str(error))
        except ReplicaStartError as error:
            return failed(reason=str(error))
        except OSError as error:
            return self._postponed(route, str(error))
        except Exception as error:  # noqa: BLE001  (whatever it is, it must not reach those that start beside it)
            _log.exception("replica not started", route=str(route.id))
            return failed(reason=storable(f"it cannot be started: {type(error).__name__}: {error}"))
        if route.start_tries:
            _log.warning("replica started at last", route=str(route.id), tries=route.start_tries + 1)
        return RouteReport(
            route.id, route.deployment_id, route.status, route.status, address=replica.address, handle=replica.handle
        )

    def _running(self, request: ReplicaRequest) -> Replica:
        """Secrets are read unless the replica runs already, as after a crash: then they may have changed or be gone."""
        runtime = self.runtimes[request.spec.runtime]
        if references_of(request.spec.env) and runtime.find(request.route_id) is None:
            request = replace(request, secrets=self.secrets.of(request))
        return runtime.start(request)

    def _postponed(self, route: RouteRow, why: str) -> PostponedStart:
        if not route.start_tries:  # said once, and not at each try
            _log.warning("replica not started; tried again and again", route=str(route.id), why=why)
        return PostponedStart(route.id, storable(why), pause_after(route.start_tries + 1))


def request_of(route: RouteRow) -> ReplicaRequest:
    """Return what its runtime is asked with."""
    return ReplicaRequest(route.id, route.deployment, route.revision, route.spec, is_walled=route.is_walled)
