"""`rollway revisions` against a real Postgres."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.cli.conftest import Rollway
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import ask, make_deployment
from tests.support.rows.releases import go_on

pytestmark = pytest.mark.usefixtures("servers")

SPEC: dict[str, Any] = {"command": ["sleep", "60"], "env": {"A": "s3cret", "B": {"secret": "env:B"}}}


@pytest.fixture
def web(engine: Engine) -> None:
    make_deployment(engine, "■■|◇", status=PROVISIONING)
    ask(engine, "add_revision", deployment="web", name="a", spec=SPEC)
    ask(engine, "add_revision", deployment="web", name="b", spec=SPEC | {"env": SPEC["env"] | {"A": "other"}})


@pytest.mark.usefixtures("web")
def test_they_are_listed_with_the_one_that_runs_and_the_one_that_is_rolled_out(rollway: Rollway) -> None:
    lines = [line.split() for line in rollway("revisions", "list", "web").out.splitlines()[1:]]
    assert [line[0] for line in lines] == ["b", "a", "v2", "v1"]
    assert ("deploying" in lines[2], "current" in lines[3]) == (True, True)
    assert lines[1][-2:] == ["sleep", "60"]
    assert "s3cret" not in rollway("revisions", "list", "web", "--json").out


@pytest.mark.usefixtures("web")
def test_what_is_shown_is_applied_again_and_means_the_values_that_are_not_shown(
    rollway: Rollway, tmp_path: Path
) -> None:
    shown = rollway("revisions", "show", "web", "a").out
    assert "s3cret" not in shown
    assert "A: '***'" in shown
    assert "secret: env:B" in shown
    assert json.loads(rollway("revisions", "show", "web", "a", "--json").out)["spec"]["env"]["A"] == "***"
    file = tmp_path / "web.yaml"
    file.write_text(shown)
    assert rollway("apply", "-f", str(file), "--no-activate").out == "web: nothing to do\n"
    file.write_text(shown.replace("name: a", "name: c"))
    refused = rollway("apply", "-f", str(file), "--no-activate")
    assert refused.code == 2
    assert refused.err == "spec: env.A: *** means a value that is not shown; write the value itself.\n"


@pytest.mark.usefixtures("web")
def test_two_that_differ_are_shown_line_by_line_with_exit_code_5(rollway: Rollway) -> None:
    ended = rollway("revisions", "diff", "web", "a", "b")
    assert (ended.code, "s3cret" in ended.out) == (5, False)
    assert "-    A: '***'\n+    A: '*** (another value)'\n" in ended.out
    assert json.loads(rollway("revisions", "diff", "web", "a", "b", "--json").out)["differs"]
    assert rollway("revisions", "diff", "web", "a", "a").code == 0
    assert rollway("revisions", "diff", "web", "a").code == 5


@pytest.mark.usefixtures("web")
@pytest.mark.parametrize(
    ("line", "code", "sentence"),
    [
        ("show web v9", 1, "web has no revision v9; 'rollway revisions list web' lists them"),
        ("show web a b", 2, "give one deployment to 'list'"),
        ("diff web", 2, "give one deployment to 'list'"),
        ("web", 2, "'rollway revisions list web' lists the revisions of the deployment web"),
        ("list api", 1, "there is no deployment called api"),
    ],
)
def test_a_line_that_makes_no_sense_is_one_sentence(rollway: Rollway, line: str, code: int, sentence: str) -> None:
    ended = rollway("revisions", *line.split())
    assert (ended.code, ended.err.count("\n")) == (code, 1)
    assert ended.err.startswith(sentence)


def test_how_replicas_are_asked_is_compared_and_planned(rollway: Rollway, engine: Engine) -> None:
    made = make_deployment(engine, "■■■")
    tls = {"ca": "file:/etc/ca.pem", "server_name": "inside"}
    documents = [
        {"deployment": "web", "revision": {"name": f"r{number}", "command": f"sleep {number}"}, "traffic": traffic}
        for number, traffic in enumerate(({"protocol": "http2"}, {"upstream_tls": tls}), start=1)
    ]
    for document in documents:
        ask(engine, "apply", documents=[document])
        go_on(engine, made, "ended")
    ended = rollway("revisions", "diff", "web", "r1", "r2")
    assert "-  protocol: http2\n" in ended.out
    assert "+  upstream_tls:\n+    ca: file:/etc/ca.pem\n+    server_name: inside\n" in ended.out
    assert "traffic" not in rollway("revisions", "diff", "web", "r2", "r2").out
    asked = "its replicas are called differently: in HTTP/2 in clear text, each as its revision has it"
    assert asked in " ".join(rollway("plan", "web", "r1").out.split())
    assert "called differently" not in rollway("plan", "web", "r2").out
