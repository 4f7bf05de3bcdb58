"""The first page is short and true: its film is what is decided, its recipes are accepted, its strategy works."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.apply import read_file
from domain.cycle.effects import routes_after
from domain.cycle.evaluator import EVALUATOR, DeploymentStrategyEvaluator
from domain.model.policy import DeploymentPolicy
from domain.strategies.budget import Buckets
from domain.strategies.builtin import STRATEGIES, parse_policy
from tests.support.pictures.pictures import NOW, V2, deploying, happens
from tests.support.pictures.simulation import all_started
from tests.support.pictures.snapshots import REPLICAS, routes

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def python_blocks(page: Path) -> list[str]:
    return [block for language, block in _FENCE.findall(page.read_text(encoding="utf-8")) if language == "python"]


def test_the_readme_is_short_and_begins_with_what_it_shows() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 130
    assert next(number for number, line in enumerate(lines) if line.startswith("```text")) < 20


def test_every_package_stands_in_the_folder_table() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    table = set(re.findall(r"^\| \[(\w+)/\]", README.read_text(encoding="utf-8"), re.MULTILINE))
    assert packages <= table
    assert all((ROOT / folder).is_dir() for folder in table)


# --- the film


@pytest.mark.parametrize("page", [README, ROOT / "docs/demo.md", ROOT / "docs/concepts.md"], ids=lambda page: page.name)
def test_the_cycles_of_the_film_are_what_the_strategy_decides(page: Path) -> None:
    film = re.findall(r"cycle \d+  (■\S+|\|\S+) +(.+)", page.read_text(encoding="utf-8"))
    rollout = film[:7]
    assert rollout[-1] == ("|■■■", "completed, swap, ready")
    for picture, did in rollout:
        deployment = deploying(picture)
        expected = happens(deployment, EVALUATOR.evaluate_one(deployment, NOW)).replace("drain ■", "drain 1")
        assert did.partition(",")[0] == "completed" if expected == "completed" else did == expected


def test_the_film_of_the_readme_is_cut_from_the_whole_one() -> None:
    whole, cut = (_FENCE.search(page.read_text(encoding="utf-8")) for page in (ROOT / "docs/demo.md", README))
    assert whole
    assert cut
    assert cut[2].strip() in whole[2]


# --- recipes


def test_every_file_of_the_recipes_is_accepted(tmp_path: Path) -> None:
    blocks = [
        block for language, block in _FENCE.findall((ROOT / "docs/recipes.md").read_text("utf-8")) if language == "yaml"
    ]
    (tmp_path / "recipes.yaml").write_text("---\n".join(blocks), encoding="utf-8")
    assert len(read_file(str(tmp_path / "recipes.yaml"))) == len(blocks) > 3


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
