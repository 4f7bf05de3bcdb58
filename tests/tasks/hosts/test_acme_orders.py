"""Certificates from files: what takes the place of the one that is shown, and what does not."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from sqlalchemy import Engine

from db.certificates import certificate_troubles
from db.connection.transactions import in_transaction
from domain.traffic.tls import TlsSettings
from domain.traffic.tls_material import some_of, why_unfit
from runtime.host_secrets import HostSecrets
from tasks.hosts.acme_orders import CertificateWork
from tests.support.certificates.authorities import Authority, Certified
from tests.support.rows.deployments import HERE, make_deployment, read, write
from tests.support.rows.entrances import set_tls
from traffic.edge_settings import CertificateSettings

SHOP, WWW = "shop.example.com", "www.shop.example.com"
Put = Callable[[Certified], str]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.make()


@pytest.fixture
def looks(engine: Engine, secrets_folder: Path) -> Callable[[str], None]:
    """Let a worker of this host look now, whenever the next look is due."""

    def look(host: str) -> None:
        write(engine, "UPDATE certificates SET due_at = now(), leased_until = NULL")
        settings = CertificateSettings(key="k" * 32)
        CertificateWork(engine, HostSecrets(host, (f"file:{secrets_folder}",)), settings).look()

    return look


@pytest.fixture
def put(engine: Engine, secrets_folder: Path, looks: Callable[[str], None]) -> Put:
    """Put a file in the place of the last one, and have it read; returns the sentences about it."""
    made = make_deployment(engine, "■", name="shop", n=1)
    for host in (SHOP, WWW):
        write(engine, "INSERT INTO entrances (kind, value, deployment_id) VALUES ('host', %s, %s)", host, made.id)
    write(engine, "DELETE FROM entrances WHERE value NOT IN (%s, %s)", SHOP, WWW)
    settings = TlsSettings(certificate=f"file:{secrets_folder}/web.pem", key=f"file:{secrets_folder}/web.key")
    set_tls(engine, made.id, settings, (SHOP, WWW))

    def put_there(certified: Certified) -> str:
        certified.written(secrets_folder)
        looks(HERE)
        return str(row(engine)["fault"] or "")

    return put_there


def row(engine: Engine) -> dict[str, Any]:
    (found,) = read(engine, "SELECT * FROM certificates")
    return found


def is_shown(engine: Engine, certified: Certified) -> bool:
    return bool(row(engine)["chain"] == certified.chain.strip())


def test_one_that_does_not_fit_takes_no_place_of_a_good_one(engine: Engine, authority: Authority, put: Put) -> None:
    good = authority.certify(SHOP, WWW)
    assert put(good) == ""
    for certified, why in (
        (authority.certify("other.example.org"), f"it is for other.example.org, and not for {SHOP}, {WWW}"),
        (authority.certify(SHOP), f"it is not for {WWW}, for which the one is that is shown"),
        (authority.certify(SHOP, WWW, key=rsa.generate_private_key(65537, 1024)), "its key is RSA of 1,024 bits"),
        (authority.certify(SHOP, WWW).alone, "its issuer, CN=authority of the tests, is not in the file"),
    ):
        assert put(certified).startswith(why)
        assert is_shown(engine, good)
        (trouble,) = in_transaction(engine, certificate_troubles)
        assert trouble.startswith(f"shop: certificate of {SHOP}, {WWW}: not renewed, and ends at ")
        assert why in trouble
    better = authority.certify(f"*.{SHOP}", SHOP)
    assert put(better) == ""
    assert is_shown(engine, better)


def test_where_none_is_shown_any_one_is_better_that_is_for_a_host(
    engine: Engine, authority: Authority, put: Put
) -> None:
    assert "and not for" in put(authority.certify("other.example.org"))
    assert row(engine)["chain"] is None
    alone = authority.certify(SHOP).alone
    assert put(alone) == ""
    assert is_shown(engine, alone)
    assert in_transaction(engine, certificate_troubles) == [
        f"shop: certificate of {SHOP}: {row(engine)['doubt']}",
        f"shop: {WWW} has no certificate, so nobody reaches it by https://",
    ]
    write(engine, "UPDATE certificates SET names = %s", [SHOP, WWW])
    write(engine, "UPDATE certificates SET not_after = now() - interval '1 minute'")
    partly = authority.certify(SHOP)
    assert put(partly) == "", "the one that is shown has ended"
    assert is_shown(engine, partly)


def test_an_older_file_is_read_by_who_read_the_newer_one_and_by_nobody_else(
    engine: Engine, authority: Authority, put: Put, looks: Callable[[str], None]
) -> None:
    older = authority.certify(SHOP, WWW, begins=datetime.now(UTC) - timedelta(days=3))
    newer = authority.certify(SHOP, WWW)
    assert put(newer) == ""
    write(engine, "UPDATE certificates SET read_by = 'another'")
    assert put(older) == ""
    assert is_shown(engine, newer), "another host has it still"
    write(engine, "UPDATE certificates SET read_by = %s", HERE)
    looks(HERE)
    assert is_shown(engine, older), "who has put it back wants it"


@pytest.mark.parametrize(
    ("names", "shown", "hosts", "why"),
    [
        (["a.b", "c.b"], [], ["a.b", "c.b"], None),
        (["*.b"], [], ["a.b"], None),
        (["a.b"], [], ["a.b", "c.b"], None),
        (["a.b"], ["a.b"], ["a.b", "c.b"], None),
        (["a.b"], ["*.b"], ["a.b", "c.b"], "it is not for c.b, for which the one is that is shown"),
        (["a.b"], ["*.b"], ["a.b"], None),
        (["x.b"], [], ["a.b"], "it is for x.b, and not for a.b"),
        (["x.b"], [], [], None),
    ],
)
def test_what_fits(names: list[str], shown: list[str], hosts: list[str], why: str | None) -> None:
    assert why_unfit(names, shown, hosts) == why


def test_some_are_named_and_the_rest_is_counted() -> None:
    assert some_of(["a", "b", "c"]) == "a, b, c"
    assert some_of([*"abcde"]) == "a, b, c and 2 more"
