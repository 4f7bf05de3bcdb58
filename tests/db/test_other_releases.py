"""What a newer release wrote is one row's fault and not everybody's; a Postgres that is too old is refused."""

from collections.abc import Iterable
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import Engine, make_url

from db.commands.execute import Origin, execute
from db.connection.arrays import named_row
from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import in_transaction, make_engine
from db.cycle.autoscaling_rules import rules_of
from db.cycle.snapshots import traceparents
from db.locking.statuses import start_failures
from db.proxies.traffic_reader import read_traffic
from db.views.deployment_views import deployments_by_id
from db.views.documents import plain
from domain.commands.base import RequestIdReusedError
from domain.commands.registry import parse_command
from domain.installation.contract import UnfitServerError
from domain.text.errors import UnreadableError
from tests.support.faults.forwarder import forwarder
from tests.support.pictures.pictures import NOW, V1
from tests.support.rows.databases import CLEANER
from tests.support.rows.deployments import ask, make_deployment, read, write
from tests.support.stack.waiting import eventually

RULE = {"metric": "queue", "source": "pushed", "comparator": ">", "threshold": 5, "step": 1, "max_replicas": 9}


def let_in_anything(engine: Engine, tables: Iterable[str]) -> None:
    """As a newer release, whose tables know more words, would have it."""
    query = "SELECT conname AS name, conrelid::regclass::text AS of FROM pg_constraint WHERE contype = 'c'"
    for check in read(engine, query):
        if check["of"] in tables:
            write(engine, f"ALTER TABLE {check['of']} DROP CONSTRAINT {check['name']}")


def test_an_entrance_and_a_route_in_words_of_a_newer_release_are_left_out_and_named(engine: Engine) -> None:
    web = make_deployment(engine, "■■")
    let_in_anything(engine, {"entrances", "routes"})
    for kind, value in (("host", "web"), ("sni", "a.b")):
        write(engine, "INSERT INTO entrances (kind, value, deployment_id) VALUES (%s, %s, %s)", kind, value, web.id)
    write(engine, "UPDATE routes SET traffic_status = 'mirrored' WHERE id = %s", web.routes[0])
    seen = in_transaction(engine, read_traffic)
    (found,) = seen.deployments
    assert [entrance.value for entrance in found.entrances] == ["web"]
    assert [served.id for served in found.routes] == [web.routes[1]]
    assert seen.faults == (
        "this release knows no sni entrances, so 'a.b' is left out",
        f"this release knows no traffic 'mirrored', so replica {web.routes[0]} is left out",
    )


def test_a_rule_in_words_of_a_newer_release_cannot_be_read(engine: Engine) -> None:
    web = make_deployment(engine)
    ask(engine, "set_autoscaling_rules", deployment="web", rules=[RULE])
    let_in_anything(engine, {"autoscaling_rules"})
    write(engine, "UPDATE autoscaling_rules SET aggregate = 'median'")
    with pytest.raises(UnreadableError, match="cannot read an autoscaling rule: 'median'"):
        in_transaction(engine, lambda connection: rules_of(connection, [web.id]))


def test_a_deployment_in_words_of_a_newer_release_is_left_out_of_a_list(engine: Engine) -> None:
    web, api = (make_deployment(engine, name=name) for name in ("web", "api"))
    let_in_anything(engine, {"deployments"})
    write(engine, "UPDATE deployments SET lifecycle = 'hibernating' WHERE id = %s", api.id)
    found = in_transaction(engine, lambda connection: deployments_by_id(connection, [web.id, api.id]))
    assert [view.id for view in found] == [web.id]


def test_a_request_that_a_newer_release_stored_is_another_one_than_ours(engine: Engine) -> None:
    make_deployment(engine)
    command = parse_command("rollway.scale", {"request_id": "r1", "deployment": "web", "desired_replicas": 4})
    first = execute(engine, command)
    assert execute(engine, command).result == first.result
    write(engine, """UPDATE commands SET payload = payload || '{"desired_replicas": "as many as needed"}'""")
    with pytest.raises(RequestIdReusedError):
        execute(engine, command)


def test_a_failure_of_the_version_before_is_later_than_the_start_that_it_did_not_write() -> None:
    before, later = NOW.replace(hour=1), NOW.replace(hour=2)
    failures = start_failures(V1, 2, later, before, 0)
    assert failures is not None
    assert failures.came_up_at is None
    assert start_failures(V1, 0, later, before, 0) is None


def test_a_trace_is_told_of_the_rollouts_that_have_one(engine: Engine) -> None:
    trace = f"00-{'1' * 32}-{'2' * 16}-01"
    for name, traceparent in (("web", trace), ("api", None)):
        make_deployment(engine, name=name)
        asked = {"request_id": name, "deployment": name, "revision": "v2"}
        execute(engine, parse_command("rollway.activate_revision", asked), origin=Origin(traceparent))
    ids = {row["name"]: row["rollout_id"] for row in read(engine, "SELECT name, rollout_id FROM deployments")}
    found = in_transaction(engine, lambda connection: traceparents(connection, list(ids.values())))
    assert found == {ids["web"]: trace}


def test_a_row_whose_columns_are_not_the_fields_is_a_mistake_that_is_told(database: str) -> None:
    fields = ("id", "name")
    kind = type("Row", (tuple,), {"_fields": fields})
    with (
        pytest.raises(TypeError, match=r"Row has the fields .*, the query has the columns \('name', 'id'\)"),
        psycopg.connect(database) as connection,
    ):
        connection.cursor(row_factory=named_row(kind)).execute("SELECT 'web' AS name, 1 AS id").fetchall()


def test_what_is_shown_of_a_value_is_json() -> None:
    some = uuid4()
    assert plain({"at": [NOW], "id": some, "n": (1, None)}) == {
        "at": [NOW.isoformat()],
        "id": str(some),
        "n": [1, None],
    }


def test_a_postgres_that_is_too_old_is_refused_and_its_connection_closed(database: str, engine: Engine) -> None:
    url = make_url(database)
    [its] = read(engine, "SHOW server_version")
    said = b"server_version\x00"
    with forwarder(url.port or 0, (said + its["server_version"][:2].encode(), said + b"15")) as network:
        old = make_engine(DatabaseSettings(url=url.set(port=network.port).render_as_string(hide_password=False)))
        with pytest.raises(UnfitServerError, match="is 15; Rollway needs 17 or newer"):
            old.connect()
        old.dispose()
    query = """
        SELECT FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> %s
    """
    eventually(lambda: read(engine, query, CLEANER) == [], what="Postgres to have noticed")
