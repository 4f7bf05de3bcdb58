"""Deployments take turns in what a host looks at: none of them holds up another, however much it asks for."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Engine

from db.connection.transactions import in_transaction, transaction
from db.replicas.host_placement import place_routes
from db.replicas.secret_requests import (
    MOST_OPEN,
    Share,
    TakenSecret,
    TooManySecretsError,
    ask_for_secrets,
    take_secrets,
)
from runtime.host_secrets import HostSecrets
from tasks.hosts.secret_checks import SecretAnswers, check_secrets
from tests.support.pictures.pictures import SCALING
from tests.support.rows.deployments import HERE, make_deployment, read, write
from tests.support.rows.hosts import up
from tests.support.stack.waiting import eventually
from tests.support.workers.replicas import SERVICE, route
from tests.support.workers.secrets import VALUE, answering


def taken(engine: Engine, *, limit: int, most: int = 100, programs: bool = False) -> list[TakenSecret]:
    share = Share(are_commands=programs, limit=limit, most=most, lease=timedelta(seconds=15))
    take = partial(take_secrets, host=HERE, again_after=timedelta(seconds=10), share=share)
    return in_transaction(engine, take)


def wanted(engine: Engine, deployment: str, *references: str) -> None:
    in_transaction(engine, partial(ask_for_secrets, deployment=deployment, references=references))


def test_deployments_take_turns_however_much_one_of_them_asks_for(engine: Engine) -> None:
    up(engine, HERE)
    wanted(engine, "greedy", *(f"env:A{number}" for number in range(100)))
    wanted(engine, "web", "env:A99", "env:DB")
    wanted(engine, "shop", "env:DB")
    found = sorted(secret.reference for secret in taken(engine, limit=5))
    assert found == ["env:A0", "env:A1", "env:A99", "env:DB", "env:DB"]


def test_a_secret_is_looked_at_by_one_worker_until_it_has_had_its_time(engine: Engine) -> None:
    up(engine, HERE)
    wanted(engine, "web", "env:A", "env:B")
    first, second = (taken(engine, limit=1) for _ in range(2))
    assert [secret.reference for secret in (*first, *second)] == ["env:A", "env:B"]
    assert taken(engine, limit=9) == []
    write(engine, "UPDATE host_secrets SET leased_until = clock_timestamp() WHERE reference = 'env:A'")
    assert [secret.reference for secret in taken(engine, limit=9)] == ["env:A"]


def test_who_looks_while_another_one_takes_gets_the_next_and_waits_for_nobody(engine: Engine) -> None:
    up(engine, HERE)
    wanted(engine, "web", "env:A", "env:B")
    with transaction(engine) as open_:
        share = Share(are_commands=False, limit=1, most=100, lease=timedelta(seconds=15))
        (first,) = take_secrets(open_, HERE, timedelta(seconds=10), share)
        with ThreadPoolExecutor(1) as pool:
            (second,) = pool.submit(taken, engine, limit=1).result(timeout=600)
    assert {first.reference, second.reference} == {"env:A", "env:B"}


def test_no_secret_is_taken_twice_by_workers_that_look_at_the_same_moment(engine: Engine) -> None:
    up(engine, HERE)
    references = [f"env:A{number}" for number in range(50)]
    wanted(engine, "web", *references)

    def look(_: int) -> list[str]:
        found = list[str]()
        while got := taken(engine, limit=1):
            found += [secret.reference for secret in got]
        return found

    with ThreadPoolExecutor(6) as pool:
        found = [reference for each in pool.map(look, range(6)) for reference in each]
    assert len(found) == len(set(found))
    assert set(found) <= set(references)


def test_a_deployment_gets_each_of_its_places_one_after_the_other(engine: Engine) -> None:
    up(engine, HERE)
    wanted(engine, "web", *(f"command:/bin/sleep {number}" for number in range(9)))
    assert [len(taken(engine, limit=1, most=4, programs=True)) for _ in range(5)] == [1, 1, 1, 1, 0]


def test_a_deployment_has_so_many_programs_at_once_and_files_wait_for_none(engine: Engine) -> None:
    up(engine, HERE)
    wanted(engine, "greedy", *(f"command:/bin/sleep {number}" for number in range(9)), "file:/run/a")
    wanted(engine, "web", "command:/bin/true")
    assert len(taken(engine, limit=9, most=4, programs=True)) == 5
    assert taken(engine, limit=9, most=4, programs=True) == []
    assert [secret.reference for secret in taken(engine, limit=9)] == ["file:/run/a"]


def test_a_deployment_waits_for_so_many_secrets_and_no_more(engine: Engine) -> None:
    up(engine, HERE)
    wanted(engine, "greedy", *(f"env:A{number}" for number in range(MOST_OPEN)))
    wanted(engine, "greedy", "env:A7")
    with pytest.raises(TooManySecretsError, match="greedy waits for 200 secrets that hosts have not looked at yet"):
        wanted(engine, "greedy", "env:MORE")
    wanted(engine, "web", "env:MORE")


def test_what_no_revision_needs_any_more_is_in_nobodys_way_after_a_minute(engine: Engine) -> None:
    """Only what runs, or is rolled out, counts on: the deployment has refused everything else."""
    make_deployment(engine, "■", name="greedy", n=1, spec={**SERVICE, "env": {"A": {"secret": "env:A9"}}})
    up(engine, HERE)
    wanted(engine, "greedy", *(f"env:A{number}" for number in range(MOST_OPEN)))
    wanted(engine, "web", "env:A1")
    (held,) = taken(engine, limit=1)
    asked_before = "UPDATE host_secrets SET asked_at = asked_at - interval '61 seconds' WHERE asked_by = 'greedy'"
    with pytest.raises(TooManySecretsError):
        wanted(engine, "greedy", "env:MORE")
    write(engine, asked_before)
    wanted(engine, "greedy", *(f"env:MORE{number}" for number in range(100)))
    left = {tuple(row.values()) for row in read(engine, "SELECT asked_by, right(reference, 2) FROM host_secrets")}
    assert {("greedy", held.reference[-2:]), ("greedy", "A9"), ("web", "A1")} < left
    assert len(left) == 3 + 100


def test_what_no_revision_needs_is_not_looked_at_again_and_again(engine: Engine, secrets: HostSecrets) -> None:
    up(engine, HERE)
    wanted(engine, "greedy", *(f"env:A{number}" for number in range(MOST_OPEN)))
    write(engine, "UPDATE host_secrets SET asked_at = asked_at - interval '61 seconds'")
    wanted(engine, "web", "env:DB")
    SecretAnswers(engine, secrets).look()
    assert [row["asked_by"] for row in read(engine, "SELECT asked_by FROM host_secrets")] == ["web"]


def test_a_host_answers_each_deployment_for_itself(engine: Engine, secrets_folder: Path) -> None:
    """What one may not have keeps no replica of another away."""
    (secrets_folder / "web").mkdir()
    (secrets_folder / "web" / "db").write_text(VALUE)
    reference = f"file:{secrets_folder}/web/db"
    needs = {**SERVICE, "env": {"DB": {"secret": reference}}}
    made = {name: make_deployment(engine, "◇◇", name=name, status=SCALING, spec=needs) for name in ("web", "spy")}
    up(engine, HERE, "other")
    divided, open_ = f"file:{secrets_folder}/{{deployment}}", f"file:{secrets_folder}"
    with answering(engine, HostSecrets(HERE, (divided,))), answering(engine, HostSecrets("other", (open_,))):
        told = {name: check_secrets(engine, name, [reference]) for name in ("web", "spy")}
    assert [check.fault for check in told["web"]] == [None, None]
    (fault,) = (check.fault for check in told["spy"] if check.fault is not None)
    assert fault.endswith("does not name for spy")
    write(engine, "UPDATE routes SET host = NULL")
    in_transaction(engine, partial(place_routes, limit=10))
    placed = {name: {route(engine, route_id)["host"] for route_id in its.routes} for name, its in made.items()}
    assert placed == {"web": {HERE, "other"}, "spy": {"other"}}


def test_who_asks_for_slow_programs_without_end_holds_up_nobody_else(engine: Engine, secrets_folder: Path) -> None:
    """The programs of one deployment take seconds each, and there are more of them than places."""
    (secrets_folder / "db").write_text(VALUE)
    slow, quick = secrets_folder / "slow", secrets_folder / "quick"
    for program, text in ((slow, "sleep 4; echo"), (quick, "echo value")):
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    secrets = HostSecrets(HERE, (f"file:{secrets_folder}", f"command:{slow}", f"command:{quick}"))
    up(engine, HERE)
    wanted(engine, "greedy", *(f"command:{slow} {number}" for number in range(MOST_OPEN)))
    with answering(engine, secrets), answering(engine, secrets):
        running = "SELECT 1 FROM host_secrets WHERE leased_until IS NOT NULL"
        eventually(lambda: len(read(engine, running)) >= 4, what="programs run")
        found = check_secrets(engine, "web", [f"command:{quick}", f"file:{secrets_folder}/db"])
        assert [(check.is_answered, check.fault) for check in found] == [(True, None)] * 2
        assert len(read(engine, running)) <= 4 + 1, "two that take at once see no lease of each other"
        write(engine, "DELETE FROM host_secrets")
