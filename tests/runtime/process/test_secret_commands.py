"""Secrets that a program of the host prints: within a time and a size, and nothing of a failure leaks."""

import os
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from runtime.host_secrets import HostSecrets
from tests.support.stack.waiting import eventually
from tests.support.workers.secrets import VALUE, fault, read


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Does what its arguments say, as Python."""
    made = tmp_path / "program"
    source = tmp_path / "program.py"
    source.write_text("import os, sys, time\nexec(sys.argv[-1])\n")
    made.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(source))} "$@"\n')
    made.chmod(0o755)
    return made


@pytest.fixture
def secrets(program: Path, tmp_path: Path) -> HostSecrets:
    file = tmp_path / "variables"
    file.write_text(f"DB={VALUE}\n")
    return HostSecrets("here", (f"command:{program} read",), file, {"PATH": os.environ["PATH"]})


def test_a_command_is_what_it_prints_and_is_told_the_hosts_variables(secrets: HostSecrets, program: Path) -> None:
    assert read(secrets, f"command:{program} read 'print(os.environ[\"DB\"])'") == VALUE
    assert "DATABASE_URL" not in read(secrets, f"command:{program} read 'print(sorted(os.environ), os.getcwd())'")


def test_what_a_command_writes_to_its_standard_error_is_no_part_of_it(secrets: HostSecrets, program: Path) -> None:
    code = "print(1, file=sys.stderr, flush=True); print(2)"
    assert read(secrets, f"command:{program} read '{code}'") == "2"


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            "print(0xC0DE); sys.exit('hunter2')",
            "the program ended with exit code 1; run it as the worker's user to see",
        ),
        ("os.kill(os.getpid(), 9)", "the program was ended by signal 9"),
        ("pass", "it is empty"),
        ("print('x' * 100_000, flush=True); time.sleep(60)", "it has more than 65,536 bytes"),
    ],
)
def test_a_command_that_fails_says_how_and_nothing_of_what_it_wrote(
    secrets: HostSecrets, program: Path, code: str, sentence: str
) -> None:
    began = time.monotonic()
    assert fault(secrets, f'command:{program} read "{code}"').startswith(sentence)
    assert time.monotonic() - began < 30


def test_a_command_that_hangs_is_killed_with_what_it_started(
    secrets: HostSecrets, program: Path, tmp_path: Path
) -> None:
    hasty = replace(secrets, command_seconds=0.5)
    left = tmp_path / "pid"
    code = f"pid = os.fork() or time.sleep(60); open('{left}', 'w').write(str(pid)); time.sleep(60)"

    def hangs_with_a_child() -> bool:
        """It may be killed before it comes so far."""
        assert fault(hasty, f'command:{program} read "{code}"') == "the program was not through within 0.5 s"
        return left.exists() and left.read_text() != ""

    eventually(hangs_with_a_child)
    eventually(lambda: not psutil.pid_exists(int(left.read_text())))


def test_commands_are_run_only_as_far_as_they_are_allowed(secrets: HostSecrets, program: Path) -> None:
    for refused in (f"{program} write 'print(1)'", f"{program}", "/bin/echo read", f"{program}2 read"):
        assert fault(secrets, f"command:{refused}").startswith("it is a command, which ROLLWAY_SECRETS_ALLOW")
    gone = HostSecrets(allow=("command:/no/such",))
    assert fault(gone, "command:/no/such") == "the program cannot be run: No such file or directory"
