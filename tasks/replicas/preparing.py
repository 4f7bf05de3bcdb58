"""Prepares a host for revisions before their replicas run there, by a command with an id that its runtime knows.

A command outlives its worker, as a replica does: the next worker finds it by its id, and starts no second one. If
nobody knows how it ended, as after a restart of the machine, it runs again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from time import monotonic
from uuid import UUID

import structlog
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.preparations import (
    OpenPreparation,
    UnpreparedRoute,
    drop_preparation,
    end_preparation,
    note_preparation,
    open_preparations,
    take_preparation,
)
from db.replicas.reports import RouteReport
from domain.model.preparation import PreparationState
from domain.model.states import RouteStatus
from domain.replicas.diagnosis import failure_in_short
from domain.replicas.health import end_in_words
from domain.revisions.secret_refs import references_of
from domain.text.storable import storable
from runtime.host_secrets import NO_SECRETS, HostSecrets, UnreadSecretError
from runtime.protocol import ImageRuntime, Replica, ReplicaRequest, ReplicaStartError, Runtime
from tasks.cycle.change_and_wake import change_and_wake
from tasks.redis.wake import Waker
from tasks.replicas.reporting import write_reports

_log = structlog.get_logger(__name__)
_EVERY_SECONDS = 1.0
_TAIL_LINES = 20
_MOST_OF_LINE = 160


@dataclass(eq=False, slots=True)
class Preparations:
    """The preparations of `host`, with one pass a second at most."""

    engine: Engine
    runtimes: Mapping[str, Runtime]
    waker: Waker
    host: str
    secrets: HostSecrets = NO_SECRETS
    _next_at: float = 0.0
    _is_open: bool = False
    _silent: set[UUID] = field(default_factory=set)

    def look(self) -> bool:
        """Take each preparation one step further. True while one is open."""
        if monotonic() < self._next_at:
            return self._is_open
        self._next_at = monotonic() + _EVERY_SECONDS
        load = partial(open_preparations, host=self.host)
        preparations, routes = in_transaction(self.engine, load)
        for preparation in preparations:
            self._step(preparation)
        if reports := _reports(routes):
            write_reports(self.engine, self.waker, reports)
        self._is_open = bool(preparations)
        return self._is_open

    def _step(self, preparation: OpenPreparation) -> None:
        """Take one step. A preparation that hangs or breaks is tried again, and holds up no other."""
        try:
            if not preparation.is_wanted:
                self._take_back(preparation)
            elif self._is_taken(preparation):
                self._continue(preparation)
        except (ReplicaStartError, UnreadSecretError) as error:
            self._end(preparation, PreparationState.FAILED, str(error))
        except OSError as error:  # its runtime gives no answer, or still pulls the image
            self._note(preparation, str(error))

    def _is_taken(self, preparation: OpenPreparation) -> bool:
        if preparation.state is PreparationState.RUNNING:
            return True
        return in_transaction(self.engine, partial(take_preparation, preparation=preparation))

    def _continue(self, preparation: OpenPreparation) -> None:
        prepare = preparation.spec.prepare
        if prepare is None:
            return
        runtime, request = self.runtimes[preparation.spec.runtime], _request_of(preparation)
        if prepare.command is None:
            if isinstance(runtime, ImageRuntime):
                runtime.provide_image(request)
            self._end(preparation, PreparationState.DONE)
            return
        replica = runtime.find(preparation.id)
        if replica is None or (not replica.running and replica.exit_code is None):
            runtime.forget(preparation.id)
            runtime.start(self._with_secrets(request))
        elif not replica.running:
            self._end_of(preparation, runtime, replica)
        elif _is_late(preparation, prepare.timeout_seconds):
            runtime.kill(preparation.id, request)
            took = f"it took longer than {prepare.timeout_seconds:g} s"
            self._end(preparation, PreparationState.FAILED, failure_in_short(took, self._tail(runtime, preparation)))
        else:
            self._note(preparation, _last_line(self._tail(runtime, preparation)))

    def _end_of(self, preparation: OpenPreparation, runtime: Runtime, replica: Replica) -> None:
        state = PreparationState.FAILED if replica.exit_code else PreparationState.DONE
        tail, words = self._tail(runtime, preparation), ""
        if state is PreparationState.FAILED:
            words = failure_in_short(end_in_words(replica.exit_code), tail)
        self._end(preparation, state, words or _last_line(tail))
        runtime.forget(preparation.id)

    def _take_back(self, preparation: OpenPreparation) -> None:
        """End a preparation that nobody waits for; its row is deleted once nothing of it runs."""
        runtime = self.runtimes[preparation.spec.runtime]
        replica = runtime.find(preparation.id) if preparation.state is PreparationState.RUNNING else None
        if replica is not None and replica.running:
            runtime.kill(preparation.id, _request_of(preparation))
            return
        runtime.forget(preparation.id)
        in_transaction(self.engine, partial(drop_preparation, preparation=preparation))
        _log.info("preparation taken back", **_log_fields(preparation))

    def _with_secrets(self, request: ReplicaRequest) -> ReplicaRequest:
        if not references_of(request.spec.env):
            return request
        return ReplicaRequest(
            *(request.route_id, request.deployment, request.revision, request.spec),
            secrets=self.secrets.of(request),
            is_walled=request.is_walled,
        )

    def _note(self, preparation: OpenPreparation, words: str) -> None:
        text = storable(words)
        if text and text != preparation.words:
            in_transaction(self.engine, partial(note_preparation, preparation=preparation, words=text))

    def _end(self, preparation: OpenPreparation, state: PreparationState, words: str = "") -> None:
        text = storable(words)
        change_and_wake(
            self.engine, self.waker, partial(end_preparation, preparation=preparation, state=state, words=text)
        )
        log = _log.warning if state is PreparationState.FAILED else _log.info
        log(
            "host prepared" if state is PreparationState.DONE else "host not prepared",
            **_log_fields(preparation),
            why=text,
        )

    def _tail(self, runtime: Runtime, preparation: OpenPreparation) -> str:
        return runtime.log_tail(preparation.id, _TAIL_LINES)


def _log_fields(preparation: OpenPreparation) -> dict[str, str]:
    return {"deployment": preparation.deployment, "revision": preparation.revision}


def _request_of(preparation: OpenPreparation) -> ReplicaRequest:
    """The request of a replica of the revision, with the command of `prepare`."""
    prepare = preparation.spec.prepare
    spec = preparation.spec.model_copy(update={"command": prepare.command if prepare else None})
    is_walled = preparation.is_walled
    return ReplicaRequest(preparation.id, preparation.deployment, preparation.revision, spec, is_walled=is_walled)


def _is_late(preparation: OpenPreparation, seconds: float) -> bool:
    began = preparation.started_at
    return began is not None and preparation.now >= began + timedelta(seconds=seconds)


def _last_line(tail: str) -> str:
    """The last line with text. Of a progress bar, which returns to the start of its line, only the last state."""
    lines = [line.strip() for line in tail.replace("\r", "\n").splitlines()]
    return next((line for line in reversed(lines) if line), "")[:_MOST_OF_LINE]


def _reports(routes: Sequence[UnpreparedRoute]) -> list[RouteReport]:
    """Reports for replicas that wait for their host, if their reason is a new one."""
    starting, failed = RouteStatus.PROVISIONING, RouteStatus.FAILED
    return [
        RouteReport(route.id, route.deployment_id, starting, failed if route.has_failed else starting, reason=sentence)
        for route in routes
        if (sentence := route.sentence) != route.reason
    ]
