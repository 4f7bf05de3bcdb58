"""What the command line says of secrets: what is missing is refused first, and no value is ever shown."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import Engine

from cli.apply import read_file
from domain.revisions.secret_refs import references_of
from runtime.host_secrets import HostSecrets
from stack.home.folder import project_root
from tests.cli.conftest import Rollway
from tests.support.rows.deployments import HERE, read
from tests.support.rows.hosts import up
from tests.support.workers.secrets import NONE, VALUE, answering

pytestmark = pytest.mark.usefixtures("servers")


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "secrets").mkdir()
    path = tmp_path / "web.yaml"
    path.write_text(f"""
deployment: web
revision:
  name: v1
  command: sleep 60
  env:
    PLAIN: {VALUE}
    DB: {{secret: "file:{tmp_path}/secrets/db"}}
""")
    return str(path)


@pytest.fixture
def hosts(engine: Engine, tmp_path: Path) -> Iterator[None]:
    """One that may read the folder of secrets, and one that may not."""
    up(engine, HERE, "bare")
    with ExitStack() as stack:
        stack.enter_context(answering(engine, HostSecrets(HERE, (f"file:{tmp_path}/secrets",))))
        stack.enter_context(answering(engine, HostSecrets("bare")))
        yield


def test_the_example_refers_to_secrets_of_each_kind() -> None:
    (example,) = read_file(str(project_root() / "examples/secrets.yaml"))
    assert example.revision is not None
    assert [reference.kind for reference in references_of(example.revision.env).values()] == ["file", "env", "command"]


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize("where", ["rollway", "laptop"])
def test_apply_refuses_what_no_host_has_before_anything_is_written_and_says_who_is_passed_over(
    where: str, request: pytest.FixtureRequest, file: str, engine: Engine, tmp_path: Path
) -> None:
    rollway: Rollway = request.getfixturevalue(where)
    refused = rollway("apply", "-f", file)
    assert refused.code == 1
    assert f"no host can run v1: host bare lacks file:{tmp_path}/secrets/db (it is a file, which" in refused.err
    assert f"host {HERE} lacks file:{tmp_path}/secrets/db ({NONE})" in refused.err
    assert read(engine, "SELECT 1 FROM deployments") == []
    (tmp_path / "secrets/db").write_text(VALUE)
    done = rollway("apply", "-f", file)
    assert done.code == 0
    assert "note: host bare gets no replicas of v1: it lacks file:" in done.err.replace("\n", " ")
    assert VALUE not in f"{refused}{done}"


def test_no_value_is_shown_wherever_one_looks(rollway: Rollway, file: str) -> None:
    said = [rollway("apply", "-f", file, "--json")]
    assert said[0].code == 0
    for command in (("status",), ("status", "web"), ("history", "web"), ("routes", "web", "--all"), ("doctor",)):
        said += [rollway(*command), rollway(*command, "--json")]
    assert VALUE not in str(said)
    (revision,) = json.loads(rollway("status", "web", "--json").out)["revisions"]
    assert revision["spec"]["env"] == {"PLAIN": "***", "DB": {"secret": f"file:{Path(file).parent}/secrets/db"}}
    again = rollway("apply", "-f", file)
    assert (again.code, again.out.strip()) == (0, "web: nothing to do")
