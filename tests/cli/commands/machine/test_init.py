"""`rollway init`: what is asked, what is tried, and what is written."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from cli.apply import read_file
from runtime.machine import listening
from tests.cli.conftest import Rollway
from tests.support.stack.environment import ISOLATED
from tests.support.stack.ports import free_port

SERVE = f"{sys.executable} -m http.server"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shop = tmp_path / "My Shop"
    shop.mkdir()
    monkeypatch.chdir(shop)
    for name, value in ISOLATED.items():
        monkeypatch.setenv(name, value)
    return shop


def init(rollway: Rollway, command: str, *more: str) -> tuple[int, str]:
    ended = rollway("init", "--command", command, *more)
    return ended.code, ended.out + ended.err


def test_what_is_written_runs_and_is_named_after_the_folder(rollway: Rollway, folder: Path) -> None:
    code, said = init(rollway, f"{SERVE} {{port}}", "--replicas", "3")
    assert code == 0
    assert "my-shop.yaml is written; one replica was healthy here after" in said
    assert "'rollway apply -f my-shop.yaml --wait'" in said
    (document,) = read_file("my-shop.yaml")
    assert document.revision is not None
    assert (document.deployment, document.replicas) == ("my-shop", 3)
    assert document.revision.command == (*SERVE.split(), "{port}")
    assert document.revision.working_directory == str(folder)
    assert [process for process in psutil.process_iter(["cwd"]) if process.info["cwd"] == str(folder)] == [
        psutil.Process()
    ]


def test_the_number_in_the_command_becomes_the_port_of_each_replica(rollway: Rollway) -> None:
    init(rollway, f"{SERVE} 8000", "--name", "shop", "--port", "8000")
    assert f"command: {SERVE} {{port}}\n" in Path("shop.yaml").read_text(encoding="utf-8")


LOSES_ITS_PORT = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        other = {**os.environ, "ROLLWAY_ROUTE": "0199", "ROLLWAY_DEPLOYMENT": "other"}
        os.execve(sys.executable, [sys.executable, "-m", "http.server", os.environ["PORT"]], other)
    os._exit(0)
time.sleep(60)
"""


def test_the_answer_of_a_replica_of_another_installation_is_not_its_own(
    rollway: Rollway, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket is seen some time after it has begun to listen; no answer counts until then."""
    monkeypatch.setattr(listening, "_AGE_OF_A_MISS_SECONDS", 1.5)
    monkeypatch.setattr(listening, "_AGE_SECONDS", 1.5)
    Path("loses.py").write_text(LOSES_ITS_PORT, encoding="utf-8")
    code, output = init(rollway, f"{sys.executable} loses.py")
    for process in psutil.process_iter(["cwd"]):
        if process.info["cwd"] == str(folder) and process != psutil.Process():
            process.kill()
    assert (code, list(Path().glob("*.yaml"))) == (1, [])
    assert "its port is held by another replica, of the deployment 'other'; try again" in output


@pytest.mark.parametrize(
    ("command", "more", "said"),
    [
        ("venv/bin/gunicorn app:app", [], "the command 'venv/bin/gunicorn' of revision 'tried' was not found"),
        (f"{sys.executable} missing.py", [], "exit code 2; its log ends: "),
        (f"{sys.executable} -c 'import nowhere'", [], "ModuleNotFoundError: No module named 'nowhere'"),
        (f"{SERVE} {{port}}", ["--health", "/healthz", "--patience", "1"], "it runs, but GET /healthz answered 404"),
        ("sleep 60", ["--patience", "1"], "refused the connection"),
    ],
)
def test_what_does_not_come_up_is_not_written(rollway: Rollway, command: str, more: list[str], said: str) -> None:
    code, told = init(rollway, command, *more)
    assert (code, list(Path().glob("*.yaml"))) == (1, [])
    assert said in told
    assert told.endswith("nothing is written, --untried writes it anyway.\n")
    assert init(rollway, command, *more, "--untried")[0] == 0


def test_who_listens_on_a_port_of_its_own_is_told_so(rollway: Rollway) -> None:
    port = free_port()
    _, told = init(rollway, f"{SERVE} {port}", "--port", "PORT", "--patience", "2")
    assert f"it listens on {port} and not on its PORT" in told


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--command", "serve -p $PORT"], "command: no shell reads '$PORT': write '{port}'"),
        (["--command", "serve 'x"], "command: has a quote that is not closed"),
        (["--command", "serve", "--name", "My_Shop"], "'My_Shop' must be lower-case letters, digits, '-' and '.'"),
        (["--command", "serve", "--port", "8000"], "'8000' is neither PORT nor a number in 'serve'"),
        (["--command", "serve", "--health", "healthz"], "'healthz' must be a path such as /healthz, or - for none"),
        (["--command", "serve", "--to", "there.yaml"], "there.yaml exists, and is left as it is"),
        ([], "nobody is at the terminal to answer: add --command"),
    ],
)
def test_a_wrong_answer_is_one_sentence(rollway: Rollway, more: list[str], said: str) -> None:
    Path("there.yaml").write_text("mine", encoding="utf-8")
    ended = rollway("init", *more)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert ended.err.startswith(said)
    assert Path("there.yaml").read_text(encoding="utf-8") == "mine"


def test_a_script_gets_a_document(rollway: Rollway) -> None:
    ended = rollway("init", "--command", "sleep 60", "--health", "-", "--json")
    told = json.loads(ended.out)
    assert told["file"] == "my-shop.yaml"
    assert told["healthy_after_seconds"] > 0
    assert "health_check" not in Path("my-shop.yaml").read_text(encoding="utf-8")


def test_at_a_terminal_five_questions_are_asked_and_a_wrong_answer_is_asked_again() -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "cli.main", "init"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = ""

        def read_until(said: str) -> None:
            nonlocal seen
            while said not in seen:
                seen += os.read(ours, 4096).decode()

        for said, typed in (
            ("Name [my-shop]: ", "My_Shop"),
            ("Error: 'My_Shop' must be lower-case letters", ""),
            ("Command that starts it, in this folder: ", f"{SERVE} 8000"),
            ("the number that is the port in its command [8000]: ", ""),
            ("Path that answers 200 when it is well, - for none [/]: ", ""),
            ("Replicas [2]: ", ""),
        ):
            read_until(said)
            os.write(ours, f"{typed}\n".encode())
        read_until("my-shop.yaml is written")
        process.wait()
    os.close(ours)
    assert process.returncode == 0
    assert f"command: {SERVE} {{port}}\n" in Path("my-shop.yaml").read_text(encoding="utf-8")
