"""A machine gets the settings of the installation by a line: once, within an hour, and nobody else learns them."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest

from db.connection.transactions import in_transaction, transaction
from db.host_invitations import invite_host, join_host
from db.retention import cut_ended
from domain.installation.host_invitation import JOIN_PATH, Invitation, JoinRequest
from domain.installation.settings import Retention
from tests.support.people.people_api import People
from tests.support.rows.deployments import read, write
from tests.support.rows.hosts import up
from tests.support.stack.waiting import eventually

INVITATION = Invitation("https://rollway.example.com", "secret")
FIRST, SECOND = "1" * 32, "2" * 32


@pytest.fixture
def invited(people_server: People) -> People:
    """With an invitation that nobody has used."""
    for table in ("host_invitations", "hosts"):
        write(people_server.engine, f"DELETE FROM {table}")
    invite = partial(invite_host, proof=INVITATION.proof, sealed_settings="sealed", actor="ann")
    in_transaction(people_server.engine, invite)
    return people_server


def ask(people: People, machine: str = FIRST, host: str = "m2", **changed: Any) -> httpx.Response:
    body = {"invitation": INVITATION.proof, "machine": machine, "host": host, **changed}
    with people.stranger() as client:
        return client.post(JOIN_PATH, json=body)


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["detail"]


def test_the_sealed_settings_are_for_one_machine_which_may_ask_again(invited: People) -> None:
    answer = ask(invited)
    assert (answer.status_code, answer.json()) == (200, {"sealed": "sealed"})
    assert answer.headers["cache-control"] == "no-store"
    assert ask(invited).json() == {"sealed": "sealed"}, "it was cut off before it had them"
    assert refused(ask(invited, SECOND, "m3")) == (
        401,
        "this line has been used already by m2; 'rollway hosts join' on a machine of the installation prints another",
    )
    (kept,) = read(invited.engine, "SELECT encode(hash, 'hex') AS hash, made_by, host FROM host_invitations")
    assert kept["hash"] not in (INVITATION.proof, INVITATION.secret.encode().hex())
    assert (kept["made_by"], kept["host"]) == ("ann", "m2")
    deeds = read(
        invited.engine, "SELECT phase, target, actor FROM fleet_history WHERE phase LIKE '%%_host' ORDER BY id"
    )
    assert [tuple(deed.values()) for deed in deeds][-2:] == [
        ("invite_host", "a new host", "ann"),
        ("join_host", "m2", "ann"),
    ]


def test_of_two_machines_at_once_one_gets_them(invited: People) -> None:
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda machine: ask(invited, machine, f"m{machine[0]}"), (FIRST, SECOND)))
    assert sorted(answer.status_code for answer in answers) == [200, 401]


def test_a_line_is_good_for_an_hour(invited: People) -> None:
    (row,) = read(invited.engine, "SELECT ends_at - clock_timestamp() AS left FROM host_invitations")
    assert 3590 < row["left"].total_seconds() <= 3600
    write(invited.engine, "UPDATE host_invitations SET ends_at = clock_timestamp()")
    code, said = refused(ask(invited))
    assert (code, said.partition(";")[0]) == (401, "this line was good for an hour, which is over")


def test_a_name_that_is_taken_uses_nothing_up(invited: People) -> None:
    up(invited.engine, "m2")
    code, said = refused(ask(invited))
    assert (code, said) == (409, "a host called m2 is up, at 127.0.0.1; give this one another name with --name")
    assert ask(invited, host="m3").status_code == 200
    write(invited.engine, "UPDATE hosts SET down_since = clock_timestamp()")
    assert ask(invited, host="m2").status_code == 200, "one that is down may come back as another machine"
    up(invited.engine, "m2")
    write(invited.engine, "UPDATE hosts SET down_since = NULL")
    assert ask(invited, host="m2").status_code == 200, "it is up by this very line"


def test_two_machines_that_join_by_one_name_at_the_same_time_are_told(invited: People) -> None:
    other = Invitation("https://rollway.example.com", "other")
    in_transaction(invited.engine, partial(invite_host, proof=other.proof, sealed_settings="x", actor="ann"))
    assert ask(invited).status_code == 200
    code, said = refused(ask(invited, SECOND, invitation=other.proof))
    assert (code, said.partition(";")[0]) == (409, "a host called m2 joins just now")


def test_who_joins_by_a_name_waits_for_who_does_so_already(invited: People) -> None:
    other = Invitation("https://rollway.example.com", "other")
    in_transaction(invited.engine, partial(invite_host, proof=other.proof, sealed_settings="x", actor="ann"))
    first = JoinRequest(invitation=INVITATION.proof, machine=FIRST, host="m2")
    with ThreadPoolExecutor(1) as threads:
        with transaction(invited.engine) as connection:
            join_host(connection, first)
            second = threads.submit(ask, invited, SECOND, invitation=other.proof)
            waits = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            eventually(lambda: read(invited.engine, waits), what="the second to wait")
        assert second.result().status_code == 409


def test_what_nobody_may_open_any_more_is_not_kept(invited: People) -> None:
    cut = partial(cut_ended, retention=Retention())
    in_transaction(invited.engine, cut)
    assert read(invited.engine, "SELECT sealed FROM host_invitations") == [{"sealed": "sealed"}]
    write(invited.engine, "UPDATE host_invitations SET ends_at = clock_timestamp()")
    in_transaction(invited.engine, cut)
    assert read(invited.engine, "SELECT sealed FROM host_invitations") == [{"sealed": ""}]
    assert "which is over" in refused(ask(invited))[1]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"invitation": "short"}, "invitation"),
        ({"machine": "x"}, "machine"),
        ({"host": "a b"}, "host"),
        ({"x": 1}, "x"),
    ],
)
def test_what_is_asked_wrongly_is_refused_by_its_field(invited: People, changed: dict[str, Any], field: str) -> None:
    answer = ask(invited, **changed)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_an_unknown_line_counts_as_a_wrong_token(invited: People) -> None:
    answers = [ask(invited, invitation=f"{number:064x}") for number in range(40)]
    assert refused(answers[0])[1].startswith("this line is unknown; 'rollway hosts join'")
    assert {answer.status_code for answer in answers} == {401, 429}
    assert ask(invited).status_code == 200, "who guesses holds up nobody who is right"
