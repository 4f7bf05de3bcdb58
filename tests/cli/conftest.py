"""The command line in this process, against real servers."""

import getpass
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.main import main
from domain.installation.tokens import Role
from tests.support.people.people_api import People, serving_people
from tests.support.stack.this_process import forget_servers


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


Rollway = Callable[..., Ended]


@pytest.fixture
def rollway(capsys: pytest.CaptureFixture[str]) -> Rollway:
    """Run a command line: `rollway("scale", "web", "3")`."""

    def run(*arguments: str) -> Ended:
        capsys.readouterr()
        code = main(arguments)
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    return run


@pytest.fixture
def servers(database: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """DATABASE_URL, REDIS_URL and ROLLWAY_HOME for the commands of one test."""
    monkeypatch.setenv("DATABASE_URL", database)
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setenv("ROLLWAY_HOME", str(tmp_path / "home"))
    forget_servers()
    yield
    forget_servers()


@pytest.fixture
def remote_server(database: str, redis_url: str, tmp_path: Path) -> Iterator[People]:
    with serving_people(database, redis_url, tmp_path) as made:
        yield made


@pytest.fixture
def laptop(rollway: Rollway, remote_server: People, monkeypatch: pytest.MonkeyPatch) -> Rollway:
    """Commands of a machine that has the address and a token, and nothing else."""
    secret = remote_server.token(Role.ADMIN, name="laptop")

    def run(*arguments: str) -> Ended:
        with monkeypatch.context() as there:
            there.delenv("DATABASE_URL", raising=False)
            there.delenv("REDIS_URL", raising=False)
            there.setenv("ROLLWAY_URL", remote_server.server.url)
            there.setenv("ROLLWAY_TOKEN", secret)
            return rollway(*arguments)

    return run


@pytest.fixture
def user() -> str:
    return getpass.getuser()
