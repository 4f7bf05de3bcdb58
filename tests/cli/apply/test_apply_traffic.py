"""The `traffic:` section of `rollway apply`: understood, compared, refused before anything is written."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from tests.cli.conftest import Rollway

File = Callable[[str], str]
pytestmark = pytest.mark.usefixtures("servers")
DEFAULTS = ["web", "web.localhost", "/web/"]


@pytest.fixture
def file(tmp_path: Path) -> File:
    def write(content: str) -> str:
        path = tmp_path / "web.yaml"
        path.write_text(content)
        return str(path)

    return write


def web(traffic: str) -> str:
    return f"deployment: web\n{traffic}\n"


def reached(engine: Engine, name: str = "web") -> list[str]:
    query = """
        SELECT n.value FROM entrances n JOIN deployments d ON d.id = n.deployment_id
         WHERE d.name = :name ORDER BY n.kind, n.value
    """
    with engine.connect() as connection:
        return list(connection.execute(text(query), {"name": name}).scalars())


def commands(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM commands")).scalar_one())


def test_where_a_deployment_is_reached_is_said_once_and_then_stays(
    rollway: Rollway, file: File, engine: Engine
) -> None:
    section = (
        "traffic: {hosts: [web.example.com], path_prefix: /api/, strip_prefix: false, request_timeout_seconds: 30}"
    )
    ended = rollway("apply", "-f", file(web(section)))
    assert ended.out.splitlines() == [
        "web: created, 1 replica wanted",
        "web: reached as web.example.com, /api/ (passed on), each request within 30 s",
    ]
    assert reached(engine) == ["web.example.com", "/api/"]
    assert rollway("apply", "-f", file(web(section))).out == "web: nothing to do\n"
    assert rollway("apply", "-f", file(web(""))).out == "web: nothing to do\n"
    assert reached(engine) == ["web.example.com", "/api/"]
    assert commands(engine) == 3


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("traffic: {path_prefix: /api/, strip_prefix: false}", "reached as /api/ (passed on)"),
        ("traffic: {path_prefix: /api/, request_timeout_seconds: 0.5}", "reached as /api/, each request within 0.5 s"),
        ("traffic: {hosts: [a, b]}", "reached as a, b"),
        ("traffic: {hosts: []}", "reached as nowhere"),
        ("traffic:", "reached as web, web.localhost, /web/"),
    ],
)
def test_each_difference_is_one_change(rollway: Rollway, file: File, section: str, said: str) -> None:
    rollway("apply", "-f", file(web("traffic: {path_prefix: /api/}")))
    assert rollway("apply", "-f", file(web(section))).out == f"web: {said}\n"
    assert rollway("apply", "-f", file(web(section))).out == "web: nothing to do\n"


def test_the_beginning_is_what_a_new_deployment_has_even_when_another_has_a_part_of_it(
    rollway: Rollway, file: File, engine: Engine
) -> None:
    rollway("apply", "-f", file("deployment: front\ntraffic: {hosts: [web]}"))
    rollway("apply", "-f", file(web("")))
    assert reached(engine) == DEFAULTS[1:]
    assert rollway("apply", "-f", file(web("traffic:"))).out == "web: nothing to do\n"
    limited = "traffic: {request_timeout_seconds: 5}"
    said = "web: reached as web.localhost, /web/, each request within 5 s\n"
    assert rollway("apply", "-f", file(web(limited))).out == said
    assert rollway("apply", "-f", file(web(limited))).out == "web: nothing to do\n"


def test_what_another_deployment_has_is_refused_before_anything_is_written(
    rollway: Rollway, file: File, engine: Engine
) -> None:
    rollway("apply", "-f", file("deployment: api\ntraffic: {hosts: [example.com]}"))
    before = commands(engine)
    wanted = "replicas: 7\ntraffic: {hosts: [example.com]}"
    ended = rollway("apply", "-f", file(f"deployment: other\n---\n{web(wanted)}"))
    assert ended.code == 1
    assert ended.err.strip() == (
        "host example.com is api's, so web cannot have it; take it from api first, or use another."
    )
    assert commands(engine) == before
    ended = rollway("apply", "-f", file(web(wanted)), "--json")
    refused = json.loads(ended.out)["error"]
    assert refused["code"] == "entrance_taken"
    assert refused["detail"] == {"deployment": "web", "entrance": "example.com", "owner": "api"}


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("traffic: {hosts: [Example.com]}", "traffic.host 1: 'Example.com' must be a lower-case host name"),
        ("traffic: {hosts: example.com}", "traffic.hosts: must be a list"),
        ("traffic: {prefix: /api/}", "traffic.prefix: there is no such field; did you mean path_prefix?"),
        ("traffic: {path_prefix: /api}", "traffic.path_prefix: '/api' must begin and end with '/'"),
        ("traffic: yes", "traffic: must be fields, each with its value"),
        (
            "---\ndeployment: b\ntraffic: {hosts: [x]}\n---\ndeployment: c\ntraffic: {hosts: [x]}",
            "traffic: x is in two",
        ),
    ],
)
def test_faults_are_named_by_file_and_field(rollway: Rollway, file: File, section: str, said: str) -> None:
    ended = rollway("apply", "-f", file(web(section)))
    assert ended.code == 2
    assert said in ended.err
