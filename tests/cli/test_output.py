"""What a terminal gets: no reason, name or log line moves its cursor or sets its title."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from rich.text import Text
from sqlalchemy import Engine

from cli.terminal.output import columns, print_json, printer, program
from stack.home.folder import project_root
from tests.cli.conftest import Rollway
from tests.support.rows.deployments import make_deployment, write

HOSTILE = "\x1b]0;OWNED\x07\x1b[2J\x9b2J\x7f"


def obeyed(said: str) -> set[str]:
    """The characters that a terminal does not show but obeys, line ends apart."""
    return {character for character in said if character < " " or "\x7f" <= character <= "\x9f"} - {"\n"}


def test_the_command_is_named_as_it_can_be_typed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "bin" / "rollway"
    installed.parent.mkdir()
    installed.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(installed), "up"])
    monkeypatch.setenv("PATH", "")
    assert program() == str(installed)
    monkeypatch.setenv("PATH", str(installed.parent))
    assert program() == "rollway"


@pytest.mark.parametrize("wrapped", [str, Text], ids=["text", "rich text"])
def test_the_printer_shows_what_a_terminal_would_obey(capsys: pytest.CaptureFixture[str], wrapped: type[str]) -> None:
    table = columns("WHO", "WHY")
    table.add_row(wrapped(HOSTILE), wrapped(HOSTILE))
    printer().print(wrapped(HOSTILE), style="red")
    printer().print(table, soft_wrap=False)
    printer(stderr=True).print(wrapped(HOSTILE))
    said = capsys.readouterr()
    assert obeyed(said.out + said.err) == set()
    assert said.out.count("\ufffd]0;OWNED") == said.err.count("\ufffd]0;OWNED") + 2 == 3


def test_json_has_no_character_that_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"reason": HOSTILE, "name": "Grüße", "command": "\u202egnp.exe"})
    said = capsys.readouterr().out
    assert obeyed(said) == set()
    assert "\u202e" not in said
    assert json.loads(said) == {"reason": HOSTILE, "name": "Grüße", "command": "\u202egnp.exe"}
    assert "Grüße" in said


@pytest.mark.usefixtures("servers")
def test_reasons_actors_and_names_of_fields_reach_no_terminal_raw(
    rollway: Rollway, engine: Engine, tmp_path: Path
) -> None:
    make_deployment(engine)
    rollway("scale", "web", "2", "--reason", HOSTILE, "--actor", HOSTILE)
    write(engine, "UPDATE deployments SET reason = %s", HOSTILE)
    write(engine, "UPDATE deployment_history SET message = %s", HOSTILE)
    for arguments in (["history", "web"], ["status"], ["status", "web"], ["status", "web", "--json"]):
        said = rollway(*arguments).out
        assert "OWNED" in said
        assert obeyed(said) == set()
    field = tmp_path / "web.yaml"
    field.write_text('"\\e]0;OWNED\\a": 1\n')
    said = rollway("apply", "-f", str(field)).err
    assert "OWNED" in said
    assert obeyed(said) == set()


@pytest.mark.usefixtures("servers")
def test_a_log_is_raw_in_a_pipe_and_shown_on_a_terminal(rollway: Rollway, engine: Engine, tmp_path: Path) -> None:
    route = make_deployment(engine, "■", n=1).routes[0]
    log = tmp_path / "home" / "logs" / "replicas" / f"{route}.log"
    log.parent.mkdir(parents=True)
    log.write_text(f"{HOSTILE}\n")
    assert rollway("logs", route.hex).out == f"{HOSTILE}\n"
    on_terminal = through_a_terminal("logs", route.hex).replace("\r\n", "\n")
    assert "OWNED" in on_terminal
    assert obeyed(on_terminal) == set()


@pytest.mark.usefixtures("servers")
def test_what_goes_into_a_pipe_ends_no_line_with_blanks_and_what_stands_under_a_heading_stays_there(
    rollway: Rollway, engine: Engine
) -> None:
    make_deployment(engine, "■■◇", name="a-long-name")
    make_deployment(engine, "■", name="web", n=1)
    for arguments in (["status"], ["status", "web"], ["routes", "web"], ["history", "web"], ["traffic"]):
        assert [line for line in rollway(*arguments).out.splitlines() if line != line.rstrip()] == []
    table = rollway("status").out.splitlines()
    heading = next(number for number, line in enumerate(table) if line.startswith("NAME"))
    assert [line.index("■") for line in table[heading + 1 :]] == [table[heading].index("REPLICAS")] * 2


@pytest.mark.usefixtures("servers")
def test_a_terminal_gets_no_escapes_where_no_color_is_set(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    make_deployment(engine)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[" in through_a_terminal("status", "web")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in through_a_terminal("status", "web")


@pytest.mark.usefixtures("servers")
def test_an_output_that_is_no_utf_8_gets_ascii_in_which_replicas_still_differ(engine: Engine) -> None:
    make_deployment(engine, "■◇|", n=2)
    ascii_only = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "POSIX"}

    def said(*arguments: str) -> str:
        command = [sys.executable, "-m", "cli.main", *arguments]
        done = subprocess.run(command, env={**os.environ, **ascii_only}, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode("ascii")

    assert "#+" in said("status", "web")
    assert "v1" in said("history", "web") + said("routes", "web")
    assert json.loads(said("status", "web", "--json"))["picture"].startswith("■◇")


def through_a_terminal(*arguments: str) -> str:
    """What a real terminal gets of a command."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "cli.main", *arguments]
    with subprocess.Popen(command, stdout=follower, stderr=follower, stdin=follower) as running:
        os.close(follower)
        said = b""
        while chunk := _read(leader):
            said += chunk
        os.close(leader)
        assert running.wait(30) == 0
    return said.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # its other side is closed
        return b""


def test_what_is_logged_while_a_stack_goes_down_is_no_part_of_the_answer(tmp_path: Path) -> None:
    late = "import structlog; structlog.get_logger().warning('late')"
    source = f"from cli.main import main; main(['down', '--json']); {late}"
    environment = {**os.environ, "ROLLWAY_HOME": str(tmp_path / "home")}
    ended = subprocess.run(
        [sys.executable, "-c", source], cwd=project_root(), env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(ended.stdout)["was_running"] is False
    assert "note: late" in ended.stderr
