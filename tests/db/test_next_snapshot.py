"""Postgres ends where the domain says: after a command, a cycle or a report the foretold snapshot is read back."""

import itertools
from dataclasses import dataclass, replace
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from db.commands.steering import case_of, write_steered
from db.connection.transactions import transaction
from db.cycle.claim import claim_named, claim_these, load
from db.replicas.host_placement import Placing
from db.replicas.host_routes import record_stopped
from db.replicas.reports import RouteReport, apply_reports
from db.retention import cut_deployment
from domain.commands.deployment_commands import Destroy, Scale
from domain.commands.rollout_commands import Abort, ActivateRevision, Pause, Promote, Restart, Resume, Retry, Undo
from domain.commands.steering_command import SteeringCommand
from domain.cycle.effects import after
from domain.handlers.dispatch import HANDLERS
from domain.installation.settings import Retention
from domain.model.deployment import Deployment
from domain.model.states import DeploymentLifecycleStatus, RouteStatus
from domain.replicas.status_reports import reported
from domain.text.errors import RollwayError
from tasks.cycle.coordinator import write_decisions
from tests.support.pictures.pictures import DESTROYED, PROVISIONING, READY, ROLLING_BACK, SCALING
from tests.support.pictures.snapshots import policies
from tests.support.rows.deployments import make_deployment

_NUMBERS = itertools.count(1)
_SIDES = st.text("■■■□▲△◇~", max_size=4)
_CLOCKS: dict[LiteralString, tuple[LiteralString, ...]] = {
    "deployments": ("phase_started_at", "paused_at", "retry_at", "last_failed_at", "last_autoscaled_at"),
    "rollouts": ("started_at", "last_progress_at", "deadline", "clock_stopped_at", "weight_known_at"),
    "routes": ("created_at", "status_changed_at", "parked_until", "drain_started_at", "started_at"),
}
"""Every clock that a snapshot or a decision looks at."""
_AGES: dict[LiteralString, tuple[LiteralString, ...]] = {
    "rollouts": ("ended_at",),
    "routes": ("stopped_at",),
    "revisions": ("created_at",),
    "deployment_history": ("updated_at",),
}
"""Every clock that says how old a row is which nobody decides from."""

LITTLE = Retention(**{name: 1 if name.endswith("count") else 0.001 for name in Retention.model_fields})
"""Keeps one of each kind, and nothing for longer than a minute and a half."""

COMMANDS: dict[type[SteeringCommand], dict[str, st.SearchStrategy[Any]]] = {
    ActivateRevision: {
        "revision": st.sampled_from(["v1", "v2", "v3"]),
        "supersede": st.booleans(),
        "desired_replicas": st.sampled_from([None, None, 0, 2, 5]),
    },
    Restart: {},
    Pause: {},
    Resume: {},
    Promote: {"full": st.booleans(), "reason": st.just("why")},
    Abort: {},
    Undo: {"revision": st.sampled_from([None, None, "v1", "v3"])},
    Retry: {},
    Scale: {"desired_replicas": st.sampled_from([0, 1, 2, 3, 4, 5, 9])},  # 9 may fail more often than 5
    Destroy: {"force": st.booleans()},
}


def as_kept(deployment: Deployment) -> Deployment:
    """Postgres keeps no canary that has neither a stage nor a weight: for every decision it is none."""
    rollout = deployment.rollout
    if rollout is None or rollout.canary is None or rollout.canary.stage or rollout.canary.weight is not None:
        return deployment
    return replace(deployment, rollout=replace(rollout, canary=None))


@dataclass
class Fleet:
    """One deployment in Postgres and what may happen to it; each way reads back what was foretold."""

    connection: psycopg.Connection
    id: UUID
    name: str
    data: st.DataObject

    def command(self) -> None:
        kind = self.data.draw(st.sampled_from([*COMMANDS, *(set(COMMANDS) - {Destroy})]), "command")
        given_values = {name: self.data.draw(values, name) for name, values in COMMANDS[kind].items()}
        command = kind.model_validate({"request_id": "r", "actor": "ann", "deployment": self.name, **given_values})
        before = self.read()
        try:
            case = case_of(self.connection, claim_named(self.connection, command.deployment), command)
            steered = case.steered()
        except RollwayError:
            assert self.read() == before
            return
        if not steered.already:
            write_steered(self.connection, case.deployment, steered, command, case.asking, {})
        assert self.read() == as_kept(steered.deployment)

    def cycle(self) -> None:
        claim = claim_these(self.connection, [self.id])
        deployments = load(self.connection, claim.deployments)
        status = deployments[0].status
        handler = self.data.draw(
            st.sampled_from([handler for handler in HANDLERS.values() if status in handler.targets]), "handler"
        )
        decisions = handler.execute(deployments, claim.now).decisions
        write_decisions(self.connection, handler.name, decisions, claim, Placing())
        foretold = after(decisions[0], claim.now)
        assert self.read() == self.with_real_ids(deployments[0], foretold)

    def report(self) -> None:
        before = self.read()
        statuses = st.sampled_from([status for status in RouteStatus if status.is_active] + [RouteStatus.FAILED])
        becomes = {
            route.id: self.data.draw(statuses) for route in before.active_routes if self.data.draw(st.booleans())
        }
        blame = self.data.draw(st.booleans(), "blame")
        reports = [
            RouteReport(
                route.id, self.id, route.status, becomes[route.id], reason="seen", address="h:1", is_lost=not blame
            )
            for route in before.active_routes
            if route.id in becomes
        ]
        apply_reports(self.connection, reports)
        changed = [route.id for route in before.active_routes if becomes.get(route.id, route.status) != route.status]
        query = "SELECT status_changed_at FROM routes WHERE id = ANY(%s)"
        times = self.connection.execute(query, (changed,)).fetchall()
        assert self.read() == (reported(before, becomes, times[0][0], blame=blame, why="seen") if changed else before)

    def replicas_stop(self) -> None:
        stopping = [route.id for route in self.read().routes if route.status is RouteStatus.TERMINATING]
        record_stopped(self.connection, stopping)

    def time_passes(self) -> None:
        seconds = self.data.draw(st.sampled_from([1, 31, 200, 2000]), "seconds")
        for table, clocks in (*_CLOCKS.items(), *_AGES.items()):
            moved = ", ".join(f"{clock} = {clock} - %(s)s * interval '1 second'" for clock in clocks)
            where = "id" if table == "deployments" else "deployment_id"
            self.connection.execute(f"UPDATE {table} SET {moved} WHERE {where} = %(id)s", {"s": seconds, "id": self.id})

    def past_is_cut(self) -> None:
        """Nothing that anybody decides from is missing afterwards."""
        before, ways_back = self.read(), self.ways_back()
        while +cut_deployment(self.connection, LITTLE, self.id):
            pass
        assert self.read() == before
        assert self.ways_back() == ways_back

    def ways_back(self) -> list[object]:
        """What `undo` and `retry` would come to."""
        return [self.would_come_to(kind) for kind in (Undo, Retry)]

    def would_come_to(self, kind: type[SteeringCommand]) -> object:
        command = kind.model_validate({"request_id": "r", "actor": "ann", "deployment": self.name})
        try:
            steered = case_of(self.connection, claim_named(self.connection, command.deployment), command).steered()
        except RollwayError as error:  # what was set by itself is named only while its record is kept
            return error.message.partition(". An undo goes back to a revision")[0]
        return steered.already, steered.details, steered.back_reason, steered.deployment.deploying_revision_id

    def read(self) -> Deployment:
        return load(self.connection, claim_these(self.connection, [self.id]).deployments)[0]

    def with_real_ids(self, before: Deployment, foretold: Deployment) -> Deployment:
        """Postgres names what is created."""
        known = {route.id for route in before.routes}
        created = iter(route.id for route in self.read().routes if route.id not in known)
        routes = (
            route if route.id in known else replace(route, id=next(created, route.id)) for route in foretold.routes
        )
        return replace(foretold, routes=tuple(routes))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_the_domain_foretold_is_read_back(module_engine: Engine, data: st.DataObject) -> None:
    status: DeploymentLifecycleStatus = data.draw(
        st.sampled_from([PROVISIONING, PROVISIONING, ROLLING_BACK, SCALING, READY])
    )
    drawn_as = f"{data.draw(_SIDES)}|{data.draw(_SIDES)}"
    name = f"web-{next(_NUMBERS)}"
    policy = data.draw(policies()).as_json()
    made = make_deployment(
        module_engine, drawn_as, name=name, n=data.draw(st.integers(0, 4)), status=status, policy=policy, status_for=10
    )
    with transaction(module_engine) as connection:
        columns = "deployment_id, name, spec"
        third = f"INSERT INTO revisions ({columns}) SELECT deployment_id, 'v3', spec FROM revisions WHERE id = %s"
        connection.execute(third, (made.v1,))
        fleet = Fleet(connection, made.id, name, data)
        ways = (
            fleet.cycle,
            fleet.cycle,
            fleet.command,
            fleet.report,
            fleet.replicas_stop,
            fleet.time_passes,
            fleet.past_is_cut,
        )
        for _ in range(data.draw(st.integers(1, 12), "steps")):
            if fleet.read().status == DESTROYED:
                return
            data.draw(st.sampled_from(ways), "way")()
