"""No statement reads the whole fleet or the whole past for one answer: each plan is read, on a fleet of two years."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import Connection
from sqlalchemy import Engine

from api.people.paths import named_in
from api.people.reads.read_table import READS, Read
from api.people.requests import ReadRequest, parameters_of
from db.access_tokens import still_valid
from db.audit.receipts import seal
from db.clock_reset import count_from_now
from db.connection.transactions import engine as engine_of_this_process
from db.connection.transactions import in_transaction, transaction
from db.fleet_measures import read_fleet
from db.proxies.acks import list_proxies, note_known_weights, release_drained
from db.proxies.measurements import due_rollouts, live_proxies
from db.proxies.proxy_reports import demanded, routes_to_look_at
from db.proxies.traffic_reader import TrafficReader
from db.replicas.host_routes import expected_on, routes_to_start, routes_to_stop, running_routes
from db.replicas.lost_hosts import fail_routes_of_lost_hosts
from db.views.deployment_views import deployment_named
from db.views.documents import begin_reading
from db.views.fleet_changes import caught_up, changes_since
from domain.commands.registry import COMMANDS
from domain.installation.tokens import Role, Token
from domain.model.lifecycle_events import RouteLifecycleType
from domain.text.errors import RollwayError
from tasks import housekeeping
from tasks.app import app
from tasks.messaging.queues import DO_ROUTE_TASK
from tasks.worker.beat import beat_schedule
from tests.support.rows.databases import copy_of, engine_on
from tests.support.rows.deployments import ask, write
from tests.support.stack.servers import EmbeddedServer
from tests.tasks.plans.explained import ExplainingCursor, explain_what_is_sent
from tests.tasks.plans.two_years import fill

WHOLE: Mapping[str, str] = {
    "db.audit.invariants._AUDIT": "deployments, routes",
    "db.audit.invariants._PAGE": "",
    "db.cycle.applier._WAIT": "deployments",
    "db.fleet_measures.read_fleet for db.connection.transactions.in_transaction": "deployments",
    "db.locking.row_locks.mark_unheld for db.commands.fleet_rules._look_anew": "deployments",
    "db.locking.row_locks.mark_unheld for db.cycle.claim.mark_what_is_off": "deployments",
    "db.replicas.host_placement._OF_ALL": "",
    "db.proxies.traffic_reader._DEPLOYMENTS": "deployments",
    "db.proxies.traffic_reader._MARKS": "deployments, entrances",
    "db.proxies.traffic_reader._ROUTES": "deployments, revisions",
    "db.replicas.host_placement._WITH_REPLICAS": "",
    "db.replicas.report_commands._STAY": "",
    "db.retention._HAVE_A_PAST": "",
    "db.clock_reset._OWNERS": "deployments, rollouts, routes",
    "db.views.fleet_changes._STATES": "deployments",
    "db.views.fleet_views._HOSTS": "",
}
"""The statements that may cost much, and the tables that each may read whole.

What lives is looked through now and then: by the audit and by the marking of what is off, by a scrape, by a freeze
that begins or ends, for the table of traffic where it is made the first time, and to see which host has work. Replicas
are counted by host once in some seconds of rollouts, and when a person looks at hosts or at what happened lately. After
a clock was set back everything is looked at. What changed is found by a look at each deployment, while anybody listens.
A host that a person drains has all of its deployments looked at, a whole chunk at once.
"""

ROLLOUT = UUID(int=(3 << 96) + 60_007)
ANN = Token(name="ann", role=Role.ADMIN, created_by="ann", created_at=datetime.now(UTC))


@pytest.fixture(scope="module")
def old_fleet(template: str, postgres_server: EmbeddedServer) -> Iterator[str]:
    with copy_of(template, postgres_server) as url:
        with psycopg.connect(url) as connection:
            fill(connection)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
        yield url


@pytest.fixture
def database(old_fleet: str) -> str:
    """For `this_process_is_a_worker`, too."""
    return old_fleet


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    made = engine_on(database)
    explain_what_is_sent(made)
    yield made
    made.dispose()


@pytest.fixture
def growing() -> Iterator[dict[str, set[str]]]:
    """The statements of a test that read the whole, of which there are none but those that may."""
    ExplainingCursor.growing.clear()
    yield ExplainingCursor.growing
    found = {name: tables - set(WHOLE.get(name, "").split(", ")) for name, tables in ExplainingCursor.growing.items()}
    assert {name: tables for name, tables in found.items() if tables or name not in WHOLE} == {}


APPLIED = {"documents": [{"deployment": "shop-777", "revision": {"command": ["serve"]}}]}
SAID: Mapping[str, dict[str, Any]] = {
    "/v1/deployments/{deployment}/revisions/{revision}/difference": {"other": "v2"},
    "/v1/history": {"people": True, "since": "1970-01-01T00:00:00Z"},
    "/v1/routes": {"id": f"{7:08d}"},
    "/v1/apply/difference": APPLIED,
    "/v1/apply/ahead": APPLIED,
}
PATH = {"deployment": "shop-7", "revision": "v1", "rollout": str(ROLLOUT), "host": "rack-7"}


@pytest.mark.usefixtures("growing")
@pytest.mark.parametrize("asked", READS, ids=lambda asked: f"{asked.method} {asked.path}")
def test_no_read_reads_the_whole(engine: Engine, asked: Read) -> None:
    path = {name: PATH[name] for name in named_in(asked.path)}
    wanted = ReadRequest(ANN, path, parameters_of(asked.parameters, SAID.get(asked.path, {})))

    def look(connection: Connection) -> None:
        begin_reading(connection)
        asked.find(connection, wanted)

    in_transaction(engine, look)


OF_ROLLOUTS = {"pause", "resume", "promote", "abort", "undo", "destroy"}
NAMED = {
    "freeze": "night",
    "group": "shops",
    "host": "rack-7",
    "subscription": "ci",
    "route_id": str(UUID(int=(4 << 96) + 60_500)),
}


@pytest.mark.usefixtures("growing")
@pytest.mark.parametrize("task", COMMANDS)
def test_no_command_reads_the_whole(engine: Engine, task: str) -> None:
    command, place = COMMANDS[task], list(COMMANDS).index(task)
    name = task.partition(".")[2]
    named = {**NAMED, "deployment": f"shop-{place + (20 if name in OF_ROLLOUTS else 2000)}"}
    said = {**command.example, **{field: named[field] for field in named if field in command.model_fields}}
    with suppress(RollwayError):  # where it means nothing
        ask(engine, name, **said)


TICKS: Mapping[str, tuple[str, dict[str, Any]]] = {
    **{name: (entry["task"], entry["kwargs"]) for name, entry in beat_schedule().items()},
    **{f"look at {kind}": (DO_ROUTE_TASK, {"route_lifecycle_type": kind}) for kind in RouteLifecycleType},
}


@pytest.mark.usefixtures("this_process_is_a_worker", "growing")
@pytest.mark.parametrize(("task", "said"), TICKS.values(), ids=TICKS)
def test_no_tick_reads_the_whole(
    engine: Engine, task: str, said: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "_WORK_SECONDS", 0.5)
    explain_what_is_sent(engine_of_this_process())
    write(engine, "UPDATE deployments SET due_at = now() WHERE lifecycle = 'deploying' AND name LIKE 'shop-_'")
    app.tasks[task](**said)


DAY = timedelta(days=1)


def _missed_of_one(connection: Connection) -> object:
    begin_reading(connection)
    return caught_up(connection, ["shop-7"], datetime.now(UTC) - DAY)


LOOKS: Mapping[str, Callable[[Connection], object]] = {
    "a scrape": read_fleet,
    "a seal": lambda connection: seal(connection, UUID(int=(1 << 96) + 7), UUID(int=(3 << 96) + 50_007)),
    "the table of traffic": lambda connection: TrafficReader().read(connection),
    "drains": lambda connection: (release_drained(connection), routes_to_look_at(connection)),
    "weights": note_known_weights,
    "what is measured": lambda connection: (
        due_rollouts(connection, 1),
        live_proxies(connection),
        demanded(connection),
    ),
    "proxies": list_proxies,
    "listeners": lambda connection: still_valid(connection, ["ann"]),
    "what changed": lambda connection: changes_since(connection, {}, None),
    "what was missed of one": _missed_of_one,
    "replicas of a host": lambda connection: (
        running_routes(connection, "rack-7"),
        running_routes(connection, "rack-7", only_starting=True),
        routes_to_start(connection, "rack-7", 10),
        routes_to_stop(connection, "rack-7"),
        expected_on(connection, "rack-7", [ROLLOUT]),
    ),
    "a host that is lost": lambda connection: fail_routes_of_lost_hosts(connection, 10),
    "a clock that was set back": count_from_now,
}


@pytest.mark.usefixtures("growing")
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_no_look_of_a_server_or_host_reads_the_whole(engine: Engine, look: Callable[[Connection], object]) -> None:
    in_transaction(engine, look)


FLUSH = "SELECT pg_stat_force_next_flush()"
"""What a session has counted so far is told, and not counted as the next transaction's."""


def test_a_scrape_looks_through_the_past_of_nothing_that_serves(engine: Engine) -> None:
    looks = "SELECT idx_scan FROM pg_stat_xact_user_tables WHERE relname = 'routes'"
    in_transaction(engine, lambda connection: connection.execute(FLUSH).fetchall())
    with transaction(engine) as connection:
        read_fleet(connection)
        ((count,),) = connection.execute(looks).fetchall()
    assert 0 < count < 1_000


def test_an_index_that_is_missing_is_told(engine: Engine, growing: dict[str, set[str]]) -> None:
    with suppress(_DoneError), transaction(engine) as connection:
        connection.execute("DROP INDEX deployments_name_key")
        deployment_named(connection, "shop-7")
        raise _DoneError
    assert growing == {"db.views.deployment_views._NEWEST": {"deployments"}}
    growing.clear()


class _DoneError(Exception):
    """Takes the index back."""
