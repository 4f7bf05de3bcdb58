"""Deployments take turns in what a host looks at: none of them holds up another, however much it asks for."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Engine

from db.connection.engine import in_transaction, transaction
from db.replicas.secrets import MOST_OPEN, Share, TakenSecret, TooManySecretsError, ask_for_secrets, take_secrets
from runtime.secrets.host_secrets import HostSecrets
from tasks.hosts.secret_checks import ask_hosts
from tests.support.rows.deployments import HERE, read, write
from tests.support.rows.hosts import up
from tests.support.stack.waiting import eventually
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
            (second,) = pool.submit(taken, engine, limit=1).result(timeout=60)
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


def test_who_asks_for_slow_programs_without_end_holds_up_nobody_else(engine: Engine, folder: Path) -> None:
    """The programs of one deployment take seconds each, and there are more of them than places."""
    (folder / "db").write_text(VALUE)
    slow, quick = folder / "slow", folder / "quick"
    for program, text in ((slow, "sleep 4; echo"), (quick, "echo value")):
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    secrets = HostSecrets(HERE, (f"file:{folder}", f"command:{slow}", f"command:{quick}"))
    up(engine, HERE)
    wanted(engine, "greedy", *(f"command:{slow} {number}" for number in range(MOST_OPEN)))
    with answering(engine, secrets), answering(engine, secrets):
        running = "SELECT 1 FROM host_secrets WHERE leased_until IS NOT NULL"
        eventually(lambda: len(read(engine, running)) >= 4, what="programs run")
        found = ask_hosts(engine, "web", [f"command:{quick}", f"file:{folder}/db"])
        assert [(check.is_answered, check.fault) for check in found] == [(True, None)] * 2
        assert len(read(engine, running)) <= 4 + 1, "two that take at once see no lease of each other"
        write(engine, "DELETE FROM host_secrets")
