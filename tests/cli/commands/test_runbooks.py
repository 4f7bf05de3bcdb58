"""Each command line of the runbooks is carried out by the real program: who is woken types them as they stand."""

import re
import shlex
from functools import partial

import pytest
from sqlalchemy import Engine

from cli.terminal.exits import ExitCode
from db.connection.transactions import in_transaction
from db.replicas.heartbeats import show_sign_of_life
from stack.home.folder import project_root
from tests.cli.conftest import Rollway
from tests.support.people.asking import KEY
from tests.support.rows.deployments import ask, make_deployment

STANDS_FOR = {"REVISION": "v1", "HOST": "gone", "FILE": str(project_root() / "examples/web.yaml")}
NAMED = {
    "forget-host": "gone",
    "drain-host": "gone",
    "unsubscribe": "pager",
    "subscriptions": "pager",
    "envoy-bootstrap": "edge-2",
    "token": "ci",
}
"""What NAME is where it is no deployment."""
READS = {"status", "history", "routes", "hosts", "proxies", "subscriptions"}
MORE = {"up": "--help", "destroy": "--yes"}
"""What a test adds: nothing is started here, and nobody is there to say yes."""
_LINE = re.compile(r"^    (rollway [^#\n]+)|`(rollway [^`\n]+)`", re.MULTILINE)


def command_lines() -> list[str]:
    """Those of all pages, each once."""
    pages = sorted(project_root().glob("docs/runbooks/*.md"))
    found = (match for page in pages for match in _LINE.finditer(page.read_text(encoding="utf-8")))
    return sorted({(match[1] or match[2]).strip() for match in found})


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("line", command_lines())
def test_it_is_understood_and_what_it_names_is_found(
    rollway: Rollway, engine: Engine, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setenv("ROLLWAY_PROXY_KEY", KEY)
    make_deployment(engine, "■■", n=2)
    ask(engine, "set_subscription", subscription="pager", webhook="PAGER")
    in_transaction(engine, partial(show_sign_of_life, host="gone", address="10.0.0.9"))
    _, command, *rest = shlex.split(line)
    name = NAMED.get(command, "web")
    arguments = [STANDS_FOR.get(word, name if word == "NAME" else word) for word in rest]
    if (command, *rest[:1]) == ("token", "revoke"):
        rollway("token", "create", "ci")
    ended = rollway(command, *arguments, *([MORE[command]] if command in MORE else []))
    assert ended.code != ExitCode.USAGE, ended.err
    assert re.search(r"there is no \w+ called", ended.err) is None, ended.err
    if command in READS:
        assert ended.code == 0, ended.err
