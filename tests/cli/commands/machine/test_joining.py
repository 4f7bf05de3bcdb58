"""`rollway hosts join` and `leave`: what they refuse, and what the line is, before any machine has become a host."""

import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from sqlalchemy import Engine

from domain.installation.host_invitation import Invitation, SharedSettings
from tests.cli.conftest import Rollway
from tests.support.certificates.authorities import Authority
from tests.support.rows.deployments import read
from traffic.certificates.x509 import KeySeal

URL = ("--url", "https://rollway.example.com")
REACHED = ("--database-url", "postgresql://u:p@10.0.0.1/db", "--redis-url", "redis://:p@10.0.0.2/0")


@pytest.mark.usefixtures("servers")
def test_the_line_is_one_line_with_a_secret_that_nothing_keeps(rollway: Rollway, engine: Engine) -> None:
    ended = rollway("hosts", "join", *URL, *REACHED, "--actor", "ann")
    assert (ended.code, ended.out.count("\n")) == (0, 1), ended.err
    assert ended.out.startswith("rollway hosts join 'https://rollway.example.com#")
    document = json.loads(rollway("hosts", "join", *URL, *REACHED, "--json").out)
    assert document.keys() == {"line", "ends_at", "url"}
    invitation = Invitation.parse(document["line"].split("'")[1])
    sealed = [row["sealed"] for row in read(engine, "SELECT sealed FROM host_invitations ORDER BY ends_at")]
    opened = KeySeal(invitation.secret, "rollway host").unseal(sealed[-1])
    environment = SharedSettings.model_validate_json(opened).environment
    assert environment["DATABASE_URL"] == REACHED[1], "the one that others reach"
    assert "ROLLWAY_HOME" not in environment


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([*URL], 2, "DATABASE_URL leads to 127.0.0.1, where no other machine finds PostgreSQL: let it listen at"),
        ([*URL, *REACHED[:2]], 2, "REDIS_URL leads to 127.0.0.1, where no other machine finds Redis"),
        ([*REACHED], 2, "no address is known by which other machines reach the server for people"),
        ([*REACHED, "--url", "http://localhost:7072"], 2, "leads the new machine to itself"),
        ([*REACHED, "--url", "rollway.example.com"], 2, "must be an address"),
        (["--labels", "zone=a"], 2, "--labels is for 'rollway hosts join' with the line, on the new machine"),
        (["https://x#s", *URL], 2, "--url is for 'rollway hosts join' on the machine that prints the line"),
        (["https://x"], 2, "LINE must be an address with a secret"),
        (["https://x#s", "--name", "a b"], 2, "--name must be letters, digits"),
        (["https://x#s", "--labels", "zone"], 2, "--labels must be labels, each once"),
        (["http://127.0.0.1:1#s"], 3, "the server at 127.0.0.1:1, which the line names, does not answer"),
    ],
)
def test_what_cannot_be_is_one_sentence(rollway: Rollway, arguments: list[str], code: int, said: str) -> None:
    ended = rollway("hosts", "join", *arguments)
    assert (ended.code, ended.err.count("\n")) == (code, 1)
    assert said in ended.err


@pytest.mark.usefixtures("servers")
def test_where_a_server_stands_for_the_database_no_line_is_made(
    rollway: Rollway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLWAY_URL", "https://rollway.example.com")
    monkeypatch.setenv("ROLLWAY_TOKEN", "t")
    ended = rollway("hosts", "join")
    assert (ended.code, "this command needs the database" in ended.err) == (3, True)


@pytest.mark.usefixtures("servers")
def test_the_address_where_the_server_listens_is_taken_and_a_file_that_cannot_be_read_is_named(
    rollway: Rollway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLWAY_PEOPLE_HOST", "10.0.0.9")
    monkeypatch.setenv("ROLLWAY_COMMAND_KEYS", str(tmp_path / "keys"))
    missing = rollway("hosts", "join", *REACHED)
    assert (missing.code, "ROLLWAY_COMMAND_KEYS: " in missing.err, "cannot be read" in missing.err) == (2, True, True)
    (tmp_path / "keys").write_text("shop = " + "k" * 40)
    assert "#" in (line := rollway("hosts", "join", *REACHED)).out, line.err
    assert "http://10.0.0.9:7072#" in line.out


@pytest.mark.usefixtures("servers")
def test_a_machine_that_became_no_host_has_nothing_to_leave(rollway: Rollway) -> None:
    ended = rollway("hosts", "leave")
    assert (ended.code, "'rollway hosts join' did not make this machine a host" in ended.err) == (1, True)


class _Anybody(BaseHTTPRequestHandler):
    """What lies between: it answers with what it was given."""

    sealed = ""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"sealed": self.sealed}).encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def by_tls(tmp_path: Path) -> Iterator[str]:
    """The address of a server whose certificate nobody vouches for."""
    server = HTTPServer(("127.0.0.1", 0), _Anybody)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*Authority.make().certify("somewhere.example").written(tmp_path))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.usefixtures("servers")
def test_no_certificate_is_needed_since_only_the_line_opens_what_comes(rollway: Rollway, by_tls: str) -> None:
    settings = SharedSettings(environment={"DATABASE_URL": "postgresql://u:p@127.0.0.1:1/db"}, files={})
    _Anybody.sealed = KeySeal("secret", "rollway host").seal(settings.model_dump_json())
    opened = rollway("hosts", "join", f"{by_tls}#secret", "--name", "m2")
    assert "DATABASE_URL: PostgreSQL at 127.0.0.1:1 cannot be reached: nothing listens there" in opened.err
    forged = rollway("hosts", "join", f"{by_tls}#another", "--name", "m2")
    assert (forged.code, "this line does not open the answer of" in forged.err) == (3, True)
