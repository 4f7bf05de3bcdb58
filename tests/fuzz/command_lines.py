"""Command lines: every command with arguments that nobody means, in this process and, as bytes, in one of its own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from random import Random

from cli.catalog import COMMANDS as LISTED
from cli.commands.deployments.change_commands import VERBS
from tests.fuzz.hostile import hostile_text
from tests.fuzz.world import World, obeyed

_STARTS_OR_STAYS = {"up", "down", "demo"}
COMMANDS: Sequence[str] = sorted(LISTED)
GOOD: Sequence[str] = (
    "scale web 4",
    "activate web v1",
    "activate web v2 --replicas 2",
    "undo web --to v1",
    "pause web",
    "resume web",
    "abort web",
    "retry web",
    "promote web",
    "destroy gone --yes",
    "drain-host rack-7",
    "undrain-host rack-7",
    "forget-host rack-7",
    "status web",
    "history web --lines 5",
    "routes web --all",
    "logs 0123",
    "slots 2",
    "create api --replicas 2",
    "policy web",
    "policy web --set {strategy:rolling_update}",
    "autoscaling web --set [{metric:queue,source:pushed}]",
    "push-metric web queue 3",
    "traffic web --set {hosts:[web.example.com]}",
    "rolling-update web v2 --no-wait",
    "rolling-update web --no-wait -- sleep 9",
    "rolling-update web --rollback --no-wait",
    "rollout undo deployment/web",
    "revisions list web",
    "revisions show web v1",
    "revisions diff web v1 v2",
)
SAID: Sequence[str] = ("--reason", "--actor", "--request-id")
OPTIONS: Sequence[str] = (
    "--json",
    "--reason",
    "--actor",
    "--request-id",
    "--replicas",
    "--to",
    "--supersede",
    "--yes",
    "--lines",
    "--all",
    "--file",
    "--no-activate",
    "--listen",
    "--admin",
    "--xds",
    "--node-id",
    "--reset",
    "--help",
    "--wait",
    "--",
    "--set",
    "--remove",
    "--image",
    "--rollback",
    "--nothing",
)
"""Without those that stay until Ctrl-C."""
_EXIT_CODES = range(6)
_RAW = b"\xff\xfe", b"\xed\xa0\x80", b"w\xffb", b"\x1b[2J"


def hostile_line(dice: Random) -> list[str]:
    return _good_but_for_words(dice) if dice.random() < 0.4 else _bad_line(dice)


def _good_but_for_words(dice: Random) -> list[str]:
    line = [hostile_text(dice) if dice.random() < 0.05 else word for word in dice.choice(GOOD).split()]
    if line[0] in VERBS:
        line += [word for option in SAID if dice.random() < 0.5 for word in (option, hostile_text(dice))]
    return [*line, "--json"] if dice.random() < 0.3 else line


def _bad_line(dice: Random) -> list[str]:
    line = [dice.choice(COMMANDS) if dice.random() < 0.95 else hostile_text(dice)]
    if line[0] in _STARTS_OR_STAYS:
        line.append("--help")
    line += [dice.choice(("web", "v1", "v2", "3", hostile_text(dice))) for _ in range(dice.randrange(3))]
    for _ in range(dice.randrange(4)):
        line.append(dice.choice(OPTIONS))
        if dice.random() < 0.6:
            line.append(hostile_text(dice))
    return [*line, "--timeout", "0"] if "--wait" in line else line


def run_line(world: World, dice: Random) -> None:
    """In this process: done, or refused without a trace."""
    line = hostile_line(dice)
    with world.unchanged_by_a_refusal() as outcome:
        said = world.rollway(line)
        outcome.refused = said.code != 0 and "--wait" not in line
    assert said.code in _EXIT_CODES, (said, line)
    assert obeyed(said.out + said.err) == set(), (said, line)


def run_process(world: World, dice: Random) -> None:
    """In a process of its own, with bytes that are no text among its arguments."""
    line = [argument.replace("\0", "").encode(errors="replace")[:50_000] for argument in hostile_line(dice)]
    line.insert(dice.randint(1, len(line)), dice.choice(_RAW))
    environment = {**os.environ, "LC_ALL": dice.choice(("C", "C.UTF-8", "POSIX"))}
    command: list[str | bytes] = [sys.executable, "-m", "cli.main", *line]
    with world.unchanged_by_a_refusal() as outcome:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        outcome.refused = done.returncode != 0 and b"--wait" not in line
    assert done.returncode in _EXIT_CODES, (done.stderr, line)
    assert b"Traceback" not in done.stderr + done.stdout, (done.stderr, line)
    assert obeyed(done.stderr.decode()) == set(), (done.stderr, line)
