"""The words are true: code in them runs, commands, files, links and tests that they name exist."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.main import app
from domain.commands.queries import QUERIES
from domain.commands.registry import COMMANDS
from domain.cycle.after import routes_after
from domain.cycle.evaluator import EVALUATOR, DeploymentStrategyEvaluator
from domain.model.policy import DeploymentPolicy
from domain.strategies import STRATEGIES, parse_policy
from domain.strategies.buckets import Buckets
from tests.support.pictures.pictures import NOW, V2, deploying, happens
from tests.support.pictures.simulation import all_started
from tests.support.pictures.snapshots import REPLICAS, routes

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = sorted(path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)((?: {4}.*\n)+)")
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
_PATH = re.compile(r"(?:[\w.-]+/)+[\w.-]*\w\.(?:py|md|yaml|yml|toml|txt)")


def code_of(page: Path) -> Iterator[str]:
    """Lines of code blocks, and what stands between backticks."""
    text = page.read_text(encoding="utf-8")
    for _, block in _FENCE.findall(text):
        yield from block.splitlines()
    prose = _FENCE.sub("", text)
    for block in _INDENTED.findall(prose):
        yield from (line.strip() for line in block.splitlines())
    yield from _SPAN.findall(prose)


def python_blocks(page: Path) -> list[str]:
    return [block for language, block in _FENCE.findall(page.read_text(encoding="utf-8")) if language == "python"]


def named(pattern: str, page: Path) -> set[str]:
    return {match for line in code_of(page) for match in re.findall(pattern, line)}


@every_page
def test_every_make_target_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert named(r"^make ([a-z][a-z-]*)", page) <= targets


def options_of(command: Any) -> set[str]:
    """Those of a command, or of all commands of a group."""
    alone = {option for parameter in command.params for option in parameter.opts}
    return alone.union(*map(options_of, getattr(command, "commands", {}).values()))


@every_page
def test_every_command_exists_with_the_options_it_is_shown_with(page: Path) -> None:
    group: Any = typer.main.get_command(app)
    for line in code_of(page):
        found = re.match(r"(?:\.venv/bin/)?rollway ([a-z][a-z-]*)(.*)", line.partition("#")[0])
        if found is None:
            continue
        assert found[1] in group.commands, line
        options = options_of(group.commands[found[1]])
        assert set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", found[2])) <= options | {"--help"}, line


def test_every_command_has_help_and_json() -> None:
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        assert command.help, name
        assert "--json" in options_of(command), name


@every_page
def test_every_task_exists(page: Path) -> None:
    assert named(r"^rollway\.[a-z_]+$", page) <= {*COMMANDS, *QUERIES}


@every_page
def test_every_link_leads_somewhere(page: Path) -> None:
    links = [link.partition("#")[0] for link in _LINK.findall(page.read_text(encoding="utf-8"))]
    gone = [link for link in links if link and "://" not in link and not (page.parent / link).exists()]
    assert gone == []


@every_page
def test_every_file_exists(page: Path) -> None:
    files = {path for line in code_of(page) for path in _PATH.findall(line) if "://" not in line}
    assert sorted(path for path in files if not (ROOT / path).exists()) == []


@cache
def functions_of(file: Path) -> frozenset[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@every_page
def test_every_test_exists(page: Path) -> None:
    pairs = _TEST.findall(page.read_text(encoding="utf-8"))
    gone = {pair for pair in pairs if not (ROOT / pair[0]).exists() or pair[1] not in functions_of(ROOT / pair[0])}
    assert gone == set()


def test_every_package_stands_in_the_folder_table() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    table = set(re.findall(r"^\| \[(\w+)/\]", README.read_text(encoding="utf-8"), re.MULTILINE))
    assert packages <= table
    assert all((ROOT / folder).is_dir() for folder in table)


@every_page
def test_no_line_is_too_long_to_review(page: Path) -> None:
    prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
    assert [line for line in prose.splitlines() if len(line) > 160 and not line.startswith("|")] == []


# --- the film


def test_the_cycles_of_the_film_are_what_the_strategy_decides() -> None:
    film = re.findall(r"cycle \d+  (■\S+|\|\S+) +(.+)", README.read_text(encoding="utf-8"))
    rollout = film[:7]
    assert rollout[-1] == ("|■■■", "completed, swap, ready")
    for picture, did in rollout:
        deployment = deploying(picture)
        expected = happens(deployment, EVALUATOR.evaluate_one(deployment, NOW)).replace("drain ■", "drain 1")
        assert did.partition(",")[0] == "completed" if expected == "completed" else did == expected


# --- the strategy


@cache
def additive() -> DeploymentStrategyEvaluator:
    """An evaluator that knows the strategy of the README, beside the others."""
    (source,) = python_blocks(README)
    namespace: dict[str, Any] = {"__name__": "additive"}
    exec(compile(source, "README.md", "exec"), namespace)
    return DeploymentStrategyEvaluator({**STRATEGIES, "additive": namespace["AdditiveStrategy"]()})


def policy(*, whole_set: bool) -> DeploymentPolicy:
    raw = {"strategy": "additive", "spec": {"whole_set": whole_set}}
    return parse_policy(raw, additive().strategies)


def test_the_strategy_has_12_lines() -> None:
    (source,) = python_blocks(README)
    assert len([line for line in source.splitlines() if line.strip()]) == 12


@pytest.mark.parametrize(
    ("whole_set", "film"),
    [
        (True, ["create 3", "wait", "drain ■■■", "completed"]),
        (False, ["create 1", "wait", "drain ■"] * 3 + ["completed"]),
    ],
)
def test_the_strategy_rolls_out(whole_set: bool, film: list[str]) -> None:  # noqa: FBT001
    deployment, seen = deploying("■■■|", policy=policy(whole_set=whole_set)), []
    for _ in range(29):
        decision = additive().evaluate_one(deployment, NOW)
        seen.append(happens(deployment, decision))
        if seen[-1] == "completed":
            break
        moved = routes_after(deployment.routes, decision.changes, NOW)
        deployment = replace(deployment, routes=moved)
        if seen[-1] == "wait":
            deployment = all_started(deployment, NOW)
    assert seen == film


@given(routes(), REPLICAS, st.booleans())
@settings(max_examples=100, derandomize=True, deadline=None, database=None)
def test_the_strategy_keeps_its_budget(live: Any, n: int, whole_set: bool) -> None:  # noqa: FBT001
    deployment = deploying("", n, policy=policy(whole_set=whole_set), routes=live)
    changes, budget = additive().evaluate_one(deployment, NOW).changes, additive().budget(deployment)
    count = Buckets.of(live, V2, NOW).live
    assert count + changes.created <= max(budget.ceiling, count)
    serving = {route.id for route in deployment.routes if route.is_serving}
    taken = serving & set(changes.drain_route_ids)
    assert not taken or len(serving - taken) >= budget.keep
