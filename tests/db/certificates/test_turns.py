"""Certificates as rows: whose turn it is, what is shown meanwhile, and what an order under way leaves behind."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Engine

from db.certificates import (
    NewCertificate,
    TakenCertificate,
    account_at,
    certificate_troubles,
    certificates_of,
    forget_account,
    hold,
    leave,
    note_account,
    note_certificate,
    note_challenge,
    note_fault,
    note_order,
    note_same,
    proxies_of_challenge,
    take_due,
)
from db.connection.transactions import in_transaction
from db.proxies.acks import SeenProxy, begin_publishing, note_proxies
from db.proxies.traffic_reader import read_traffic
from domain.traffic.tls import CertificateKind, TlsSettings
from tests.support.rows.deployments import Made, make_deployment, read, write
from tests.support.rows.entrances import set_tls

MINUTE = timedelta(minutes=1)
OWN = TlsSettings(certificate="file:/c.pem", key="file:/c.key")
BEGINS = datetime(2026, 1, 1, tzinfo=UTC)
NEW = NewCertificate("chain", "sealed", ("a.example.com",), BEGINS, BEGINS + timedelta(days=90))
LATER = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def web(engine: Engine) -> Made:
    return make_deployment(engine, "■", n=1)


def wants(engine: Engine, web: Made, settings: TlsSettings | None, *hosts: str) -> None:
    set_tls(engine, web.id, settings, hosts)


def take(engine: Engine) -> TakenCertificate | None:
    return in_transaction(engine, partial(take_due, lease=MINUTE))


def taken(engine: Engine) -> TakenCertificate:
    found = take(engine)
    assert found is not None
    return found


def rows(engine: Engine) -> list[dict[str, Any]]:
    return read(engine, "SELECT * FROM certificates ORDER BY kind, name")


def test_each_has_one_turn_at_a_time_and_the_next_when_its_lease_is_over(engine: Engine, web: Made) -> None:
    wants(engine, web, TlsSettings(), "a.example.com", "b.example.com")
    first, second = taken(engine), taken(engine)
    assert {first.name, second.name} == {"a.example.com", "b.example.com"}
    assert (first.deployment, first.settings, take(engine)) == (web.name, TlsSettings(), None)
    write(engine, "UPDATE certificates SET leased_until = now() - interval '1 s' WHERE name = %s", first.name)
    assert taken(engine).name == first.name
    in_transaction(engine, partial(hold, certificate=second, lease=-MINUTE))
    assert taken(engine).name == second.name
    in_transaction(engine, partial(hold, certificate=first, lease=60 * MINUTE))
    assert taken(engine).name == first.name, "a lease from before the clock was set back by an hour"


def test_turns_go_from_deployment_to_deployment(engine: Engine, web: Made) -> None:
    wants(engine, web, TlsSettings(), *(f"{number}.example.com" for number in range(5)))
    other = make_deployment(engine, "■", name="other", n=1)
    wants(engine, other, TlsSettings(), "other.example.com", "more.example.com")
    assert [taken(engine).deployment for _ in range(7)] == ["web", "other", "web", "other", "web", "web", "web"]


def test_what_is_not_wanted_any_more_is_shown_until_what_is_wanted_is_there(engine: Engine, web: Made) -> None:
    wants(engine, web, OWN)
    in_transaction(engine, partial(note_certificate, certificate=taken(engine), new=NEW, due_at=LATER))
    wants(engine, web, TlsSettings(), "a.example.com")
    assert [(row["kind"], row["is_wanted"]) for row in rows(engine)] == [("acme", True), ("given", False)]
    (shown,) = secured(engine).certificates
    assert (shown.name, shown.names, shown.key) == (f"{web.name}/given/", ("a.example.com",), "sealed")
    in_transaction(engine, partial(note_certificate, certificate=taken(engine), new=NEW, due_at=LATER))
    assert [row["kind"] for row in rows(engine)] == ["acme"]
    wants(engine, web, None)
    assert rows(engine) == []


def secured(engine: Engine) -> Any:
    (deployment,) = in_transaction(engine, read_traffic).deployments
    assert deployment.secured is not None
    return deployment.secured


def test_one_that_an_authority_has_given_waits_for_its_time_and_a_file_is_read_again(engine: Engine, web: Made) -> None:
    settings = TlsSettings(callers_ca="file:/ca.pem")
    wants(engine, web, settings, "a.example.com")
    for _ in range(2):
        new = (
            NEW if (found := taken(engine)).kind is CertificateKind.ACME else NewCertificate("ca", None, (), None, None)
        )
        in_transaction(engine, partial(note_certificate, certificate=found, new=new, due_at=LATER))
    assert secured(engine).callers_ca == "ca"
    wants(engine, web, settings, "a.example.com")
    assert [(found.kind, found.chain) for found in iter(partial(take, engine), None)] == [
        (CertificateKind.CALLERS, "ca")
    ]


def test_a_fault_keeps_what_is_shown_and_an_order_that_may_still_come(engine: Engine, web: Made) -> None:
    wants(engine, web, TlsSettings(), "a.example.com")
    order = taken(engine)
    in_transaction(engine, partial(note_order, certificate=order, url="https://order", order_key="sealed"))
    in_transaction(engine, partial(note_challenge, certificate=order, token="t", answer="a"))
    assert [(challenge.token, challenge.answer) for challenge in secured(engine).challenges] == [("t", "a")]
    fault = partial(note_fault, certificate=order, fault="away", pause=-MINUTE)
    in_transaction(engine, partial(fault, keeps_order=True))
    again = taken(engine)
    assert (again.order_url, again.order_key, again.failures, again.fault) == ("https://order", "sealed", 1, "away")
    in_transaction(engine, fault)
    assert in_transaction(engine, certificate_troubles) == [f"{web.name}: certificate of a.example.com: away"]
    (view,) = in_transaction(engine, partial(certificates_of, deployment_id=web.id))
    assert (view.fault, view.is_ordered, secured(engine).challenges) == ("away", False, ())
    in_transaction(engine, partial(note_same, certificate=order, read_by="here", due_at=LATER))
    assert (rows(engine)[0]["fault"], rows(engine)[0]["failures"]) == (None, 0)
    in_transaction(engine, partial(leave, certificate=order, pause=-MINUTE))
    assert taken(engine).is_read


def test_a_challenge_is_answered_when_every_live_proxy_knows_it(engine: Engine, web: Made) -> None:
    wants(engine, web, TlsSettings(), "a.example.com")
    order = taken(engine)
    in_transaction(engine, partial(note_challenge, certificate=order, token="t", answer="a"))
    proxies = partial(proxies_of_challenge, certificate=order)
    assert in_transaction(engine, proxies) == (0, 0)
    in_transaction(engine, partial(begin_publishing, publisher_id="p"))
    seen = [SeenProxy(name, "envoy", 10) for name in ("one", "two")]
    in_transaction(engine, partial(note_proxies, proxies=seen))
    write(engine, "UPDATE proxies SET acked_snapshot = pg_current_snapshot() WHERE node_id = 'one'")
    assert in_transaction(engine, proxies) == (2, 1)
    write(engine, "UPDATE proxies SET acked_snapshot = pg_current_snapshot()")
    assert in_transaction(engine, proxies) == (2, 0)


def test_an_authority_knows_one_account_the_first_that_was_noted(engine: Engine) -> None:
    for key in ("first", "second"):
        note = partial(note_account, directory="https://d", sealed_key=key, url=f"https://d/{key}")
        assert in_transaction(engine, note) == ("first", "https://d/first")
    at = partial(account_at, directory="https://d")
    assert in_transaction(engine, at) == ("first", "https://d/first")
    in_transaction(engine, partial(forget_account, directory="https://d"))
    assert in_transaction(engine, at) is None
