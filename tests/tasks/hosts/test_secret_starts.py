"""Replicas start with their secrets; a start in vain says what is missing, and the next one goes elsewhere."""

import json
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from urllib.request import urlopen

from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.replicas.host_placement import place_routes
from db.replicas.secret_requests import note_fault
from runtime.host_secrets import HostSecrets
from tasks.redis.wake import Waker
from tasks.replicas.host_replicas import HostReplicas
from tests.support.pictures.pictures import SCALING
from tests.support.rows.deployments import HERE, make_deployment, write
from tests.support.rows.hosts import up
from tests.support.workers.replicas import SERVICE, Runtimes, make_route, route, until, until_started
from tests.support.workers.secrets import NONE, VALUE, checks, referring


def test_a_replica_is_started_with_its_secrets(
    engine: Engine,
    runtimes: Runtimes,
    waker: Waker,
    secrets: HostSecrets,
    secrets_folder: Path,
    probe_once: Callable[[], bool],
) -> None:
    (secrets_folder / "db").write_text(f"{VALUE}\n")
    route_id = make_route(engine, referring(secrets_folder))
    until_started(HostReplicas(engine, runtimes, waker, HERE, timedelta(), secrets))
    until(engine, route_id, "healthy", probe_once)
    with urlopen(f"http://{route(engine, route_id)['address']}/", timeout=5) as answer:
        assert json.load(answer)["version"] == VALUE


def test_a_start_without_its_secret_says_which_on_which_host_and_the_next_one_goes_elsewhere(
    engine: Engine, runtimes: Runtimes, waker: Waker, secrets: HostSecrets, secrets_folder: Path
) -> None:
    up(engine, HERE, "other")
    made = make_deployment(engine, "◇◇", n=2, status=SCALING, spec=referring(secrets_folder))
    first, second = made.routes
    write(engine, "UPDATE routes SET host = NULL WHERE id = %s", second)
    until_started(HostReplicas(engine, runtimes, waker, HERE, timedelta(), secrets))
    failed = route(engine, first)
    assert (failed["status"], failed["started_at"]) == ("failed", None)
    assert (
        failed["status_reason"]
        == f"host {HERE} cannot have the secret file:{secrets_folder}/db of variable VERSION: {NONE}"
    )
    assert checks(engine) == [(HERE, True, NONE)]
    assert in_transaction(engine, partial(place_routes, limit=10)) == 1
    assert route(engine, second)["host"] == "other"


def test_what_a_host_lacks_keeps_only_those_away_that_refer_to_it(engine: Engine, secrets_folder: Path) -> None:
    up(engine, HERE, "other")
    for deployment in ("needs", "stranger"):
        note = partial(note_fault, deployment=deployment, reference=f"file:{secrets_folder}/db", fault=NONE)
        in_transaction(engine, partial(note, host="other" if deployment == "needs" else HERE))
    needs = make_deployment(engine, "◇◇", name="needs", n=2, status=SCALING, spec=referring(secrets_folder))
    plain = make_deployment(engine, "◇◇", name="plain", n=2, status=SCALING, spec=SERVICE)
    write(engine, "UPDATE routes SET host = NULL")
    in_transaction(engine, partial(place_routes, limit=10))
    placed = [[route(engine, route_id)["host"] for route_id in made.routes] for made in (needs, plain)]
    assert placed == [[HERE, HERE], ["other", HERE]]
