"""Certificates end to end: given by files and by a real authority, renewed, and got in spite of who is killed."""

import ssl
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.edge.conftest import KEY, Front
from tests.support.certificates.authorities import Authority, shown
from tests.support.rows.deployments import read
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e


def test_an_authority_gives_a_certificate_for_each_host_and_gives_it_again_in_time(front: Front) -> None:
    front.deploy("web", hosts=["web.example.com", "www.example.com"], tls="auto")
    believes = ssl.create_default_context(cadata=front.pebble.root)
    for host in ("web.example.com", "www.example.com"):
        eventually(partial(front.answers, host, believes), what=host)
    assert front.pebble.orders() == 2
    (first, _) = rows = front.rows()
    assert [(row["name"], row["names"], row["fault"], row["token"]) for row in rows] == [
        (name, [name], None, None) for name in ("web.example.com", "www.example.com")
    ]
    life = first["not_after"] - first["not_before"]
    assert first["due_at"] == first["not_before"] + life * 2 / 3
    stored = str(read(front.fleet.engine, "SELECT c.*, a.* FROM certificates c, acme_accounts a"))
    assert "PRIVATE KEY" not in stored
    front.fleet.ask("set_traffic", deployment="web", hosts=["web.example.com", "www.example.com"], tls="auto")
    assert [row["due_at"] for row in front.rows()] == [row["due_at"] for row in rows]
    front.renew()
    eventually(lambda: front.rows()[0]["chain"] != first["chain"] and front.rows()[0]["due_at"] > datetime.now(UTC))
    eventually(lambda: front.rows()[0]["chain"].startswith(pem_of(front, "web.example.com", believes)))
    eventually(lambda: front.pebble.orders() == 4)


def pem_of(front: Front, host: str, believes: ssl.SSLContext) -> str:
    return shown(front.tls_port, host, believes)


def test_a_host_that_leads_elsewhere_is_named_and_what_is_shown_is_shown_on(front: Front) -> None:
    front.deploy("web", hosts=["web.example.com"], tls="auto")
    believes = ssl.create_default_context(cadata=front.pebble.root)
    eventually(lambda: front.answers("web.example.com", believes))
    front.pebble.points_elsewhere("web.example.com")
    front.renew()
    fault = eventually(lambda: front.rows()[0]["fault"])
    assert "the authority did not find what it asked for" in fault
    assert front.rows()[0]["due_at"] - datetime.now(UTC) > timedelta(seconds=60)
    assert front.answers("web.example.com", believes)


def test_where_port_80_cannot_be_reached_names_are_proven_within_a_handshake(front: Front) -> None:
    front.fleet.kill("worker1")
    front.start_worker("worker1", ROLLWAY_ACME_CHALLENGE="tls-alpn-01")
    front.deploy("web", hosts=["web.example.com", "www.example.com"], tls="auto")
    believes = ssl.create_default_context(cadata=front.pebble.root)
    for host in ("web.example.com", "www.example.com"):
        eventually(partial(front.answers, host, believes), what=host)
    assert front.pebble.orders() == 2
    stored = str(read(front.fleet.engine, "SELECT c.*, a.* FROM certificates c, acme_accounts a"))
    assert "PRIVATE KEY" not in stored
    assert not front.has("token")


def test_a_certificate_from_a_file_is_shown_until_there_is_a_better_one(front: Front, tmp_path: Path) -> None:
    authority, folder = Authority.make(), tmp_path / "own"
    folder.mkdir()
    chain, key = authority.certify("web.example.com").written(folder)
    front.fleet.kill("worker1")
    environment = {"ROLLWAY_CERTIFICATE_KEY": KEY, "ROLLWAY_SECRETS_ALLOW": f"file:{folder}"}
    front.fleet.start_workers("worker1", **environment)
    front.deploy("web", hosts=["web.example.com"], tls={"certificate": f"file:{chain}", "key": f"file:{key}"})
    eventually(lambda: front.answers("web.example.com", authority.context()))
    other, past = authority.certify("web.example.com"), datetime.now(UTC) - timedelta(days=9)
    for made, why in (
        (authority.certify("web.example.com", begins=past, life=timedelta(days=1)), "it ended at"),
        (authority.certify("web.example.com", begins=past + timedelta(days=10)), "and not yet"),
        (type(other)(other.chain, authority.certify("x").key), "the key belongs to another certificate"),
        (type(other)("nonsense", other.key), "is not in PEM"),
    ):
        made.written(folder)
        front.renew()
        eventually(partial(front.complains, why), what=why)
        assert front.answers("web.example.com", authority.context())
    other.written(folder)
    front.renew()
    eventually(lambda: front.rows()[0]["fault"] is None)
    eventually(lambda: other.chain.startswith(shown(front.tls_port, "web.example.com", authority.context())))


def test_a_wildcard_is_proven_by_a_record_that_a_program_sets(front: Front, tmp_path: Path) -> None:
    hook = tmp_path / "hook"
    hook.write_text(f"""#!{sys.executable}
import json, sys, urllib.request
verb, name, value = sys.argv[1:]
url = "{front.pebble.names_management}/" + ("set-txt" if verb == "set" else "clear-txt")
body = json.dumps({{"host": name + ".", "value": value}}).encode()
urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open(url, body)
""")
    hook.chmod(0o755)
    front.deploy("web", hosts=["*.example.com"], tls="auto")
    fault = eventually(lambda: front.rows()[0]["fault"])
    assert "ROLLWAY_ACME_DNS_HOOK" in fault
    front.fleet.kill("worker1")
    environment = {**front.pebble.environment, "ROLLWAY_ACME_DNS_HOOK": str(hook), "ROLLWAY_CERTIFICATE_KEY": KEY}
    front.fleet.start_workers("worker1", **environment)
    front.renew()
    believes = ssl.create_default_context(cadata=front.pebble.root)
    eventually(lambda: front.answers("any.example.com", believes))
