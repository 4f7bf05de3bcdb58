"""The pages agree with the code and with each other: promises, rooms, handlers, dependencies."""

import ast
import itertools
import json
import os
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from domain.handlers.dispatch import HANDLERS
from tests.apart import APART
from tools.platforms.table import PLATFORMS
from tools.reference.rooms import printed, rooms

ROOT = Path(__file__).parents[1]
GUARANTEES = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
PRODUCT = ("domain", "db", "runtime", "traffic", "tasks", "api", "cli", "stack")


def rows_of(text: str) -> list[list[str]]:
    """The cells of every row of every table, headings too."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]


# --- promises

NOT_YET = "not yet"

_SMALL = re.compile(
    "a|all|an|and|any|are|as|at|be|been|before|by|can|do|does|each|every|for|from|has|have|if|in|is|it|its|many|much|no|"
    "not|of|on|only|or|out|so|than|that|the|their|then|there|these|they|this|to|too|was|were|when|which|while|with"
)
_ROOTS = {"lost": "lose", "drew": "draw", "held": "hold", "began": "begin", "begun": "begin", "kept": "keep"}


def words_of(sentence: str) -> frozenset[str]:
    """What a sentence is about: "a replica is stopped" -> {replica, stop}."""
    found = re.findall(r"[a-z]{2,}", sentence.lower().replace("'s", ""))
    return frozenset(_root(_ROOTS.get(word, word)) for word in found if not _SMALL.fullmatch(word))


def _root(word: str) -> str:
    stem = re.sub(r"(ing|ed|es|s|e)$", "", word) if len(word) > 3 else word
    return stem[:-1] if re.search(r"([^aeiouls])\1$", stem) else stem


def promised() -> list[list[str]]:
    """The rows of the tables that say what is promised, and what shows it."""
    tables = re.findall(r"^\| promise \|.*\n\|[-|]+\n((?:\|.*\n)+)", GUARANTEES, re.MULTILINE)
    return [row for table in tables for row in rows_of(table)]


@cache
def sentences() -> list[str]:
    """What other pages say."""
    pages = [ROOT / "README.md", *(path for path in ROOT.glob("docs/*.md") if path.name != "guarantees.md")]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    return [sentence for text in texts for sentence in re.split(r"(?<=[.:;|])\s|\n\n", text)]


@cache
def names_of_tests() -> list[str]:
    return [
        node.name.removeprefix("test_").removeprefix("trap_").replace("_", " ")
        for path in ROOT.glob("tests/**/*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def shown_elsewhere(promise: str) -> list[str]:
    """Promises, sentences and tests that have all the words which this promise is about."""
    wanted = words_of(promise)
    shown = [promise for promise, by in promised() if by != NOT_YET]
    return [told for told in (*shown, *sentences(), *names_of_tests()) if wanted <= words_of(told)]


@pytest.mark.parametrize(
    ("promise", "told"),
    [
        ("every live proxy has acknowledged before a replica stops", "a replica is stopped only when every live proxy"),
        (
            "no request is lost in a rollout",
            "under load, rollouts, promotions and a restart of the server for proxies lose no",
        ),
        ("tables and logs stop growing", "at ten rollouts a minute tables, logs and Redis stop growing"),
    ],
)
def test_what_is_shown_elsewhere_is_found(promise: str, told: str) -> None:
    assert any(found.startswith(told) for found in shown_elsewhere(promise))


def test_nothing_is_called_not_yet_shown_that_is_shown_or_promised_elsewhere() -> None:
    open_ones = [promise for promise, by in promised() if by == NOT_YET]
    assert {promise: shown_elsewhere(promise) for promise in open_ones} == {promise: [] for promise in open_ones}


def test_every_promise_is_shown_by_a_test_or_by_a_measurement_or_by_nothing_yet() -> None:
    shows = re.compile(rf"{NOT_YET}|(?!.*{NOT_YET}).*`(tests/[\w/]+\.py(::\w+)?|make [\w-]+)`.*")
    assert [row for row in promised() if len(row) != 2 or not shows.fullmatch(row[1])] == []


def test_the_promises_are_thirty_one_sentences_that_one_can_read() -> None:
    shown = [promise for promise, by in promised() if by != NOT_YET]
    assert len(shown) == len(set(shown)) == 31
    assert [promise for promise in shown if len(promise) > 140] == []


def test_only_promises_that_need_minutes_or_another_release_are_left_to_make_test_all() -> None:
    shown = {file for _, by in promised() for file in re.findall(r"`(tests/[\w/]+\.py)", by)}
    assert {file for file in shown if file.startswith(tuple(APART))} == {
        "tests/e2e/faults/test_upgrade.py",
        "tests/prove/test_prove.py",
    }


# --- the way in


def test_the_readme_and_the_index_tell_users_to_read_the_same_pages_in_the_same_order() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Read on")[2].partition("\n\n- ")[0]
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8").partition("## Read these in order")[2]
    order = re.findall(r"\]\(docs/([\w/.-]+)\)", readme)
    assert len(order) == 6
    assert re.findall(r"^\| \[[^]]+\]\(([\w/.-]+)\)", index.partition("\n## ")[0], re.MULTILINE) == [
        "../README.md",
        *order,
    ]
    for page, after in itertools.pairwise(order):
        link = os.path.relpath(after, Path(page).parent)
        assert f"({link})" in (ROOT / "docs" / page).read_text(encoding="utf-8"), f"{page} does not lead to {after}"


def test_the_concepts_are_six_words_in_one_page() -> None:
    page = (ROOT / "docs/concepts.md").read_text(encoding="utf-8")
    assert len(page.split()) <= 800
    words = {"deployment", "revision", "route", "rollout", "cycle", "budget"}
    assert words <= set(re.findall(r"\*\*An? (\w+)\*\*", page))


def test_the_changelog_has_the_version_and_tells_a_feature_in_three_lines() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    releases = re.findall(r"^## (\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d$", changelog, re.MULTILINE)
    assert releases[0] == project["version"]
    told = changelog.partition("## 0.1.0 - ")[0]
    entries = re.findall(r"^- .*(?:\n  .*)*", told, re.MULTILINE)
    assert [entry for entry in entries if entry.count("\n") > 2] == []


# --- rooms


def test_every_package_says_in_one_line_what_is_in_it() -> None:
    packages = {str(path.parent.relative_to(ROOT)) for room in PRODUCT for path in ROOT.glob(f"{room}/**/__init__.py")}
    listed = rooms()
    assert set(listed) == packages
    assert [room for room, sentence in listed.items() if not re.fullmatch(r"[A-Z`].{9,118}\.", sentence)] == []
    assert len(set(listed.values())) == len(listed)


def test_the_architecture_is_2500_words_and_contributing_is_one_page() -> None:
    assert len(ARCHITECTURE.split()) <= 2500
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split()) <= 1000


def test_the_floors_of_every_package_are_printed_below_it() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    held = {of.replace(".", "/") for contract in contracts for of in contract.get("containers", ())}
    lines = list(printed())
    below = {line.split()[0] for line, after in itertools.pairwise(lines) if after.startswith("  floors: ")}
    assert below == {of for of in held if of.partition("/")[0] not in {"tools", "tests"}} != set()


def test_the_floors_of_the_house_are_drawn_as_import_linter_holds_them() -> None:
    above = ARCHITECTURE.partition("Imports point down only")[0]
    drawn = [set(floor.split()) for floor in re.findall(r"^    (\w+(?: {2,3}\w+)*) {4,}", above, re.MULTILINE)]
    told = re.search(r"Imports point down only: (.*?)\. ", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert told
    in_words = [set(re.findall(r"`(\w+)`", floor)) for floor in told[1].split(" → ")]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (house,) = (contract for contract in contracts if contract["id"] == "layers")
    assert drawn == in_words == [set(layer.split(" | ")) for layer in house["layers"]]


def test_the_handlers_are_described_as_they_declare_themselves() -> None:
    table = [row for row in rows_of(ARCHITECTURE) if len(row) == 6 and row[0].startswith("`")]
    assert table == [
        [
            f"`{handler.name}`",
            f"`{event}`",
            f"{handler.cadence.short or 'none'} / {handler.cadence.long}",
            f"`{handler.lock_id}`" if handler.lock_id else "none",
            ", ".join(map(str, handler.targets)),
            str(handler.transitions.success.to),
        ]
        for event, handler in HANDLERS.items()
    ]


# --- reasons


def test_every_dependency_says_what_it_is_here_for() -> None:
    page = (ROOT / "docs/decisions/0003-dependencies.md").read_text(encoding="utf-8")
    told = {name.split(" ")[0] for row in rows_of(page) for name in row[0].split(", ")} - {"package"}
    lines = [line for file in ROOT.glob("requirements/*.in") for line in file.read_text(encoding="utf-8").splitlines()]
    asked = {found[0] for line in lines if (found := re.match(r"[a-z][\w-]*", line))}
    node = json.loads((ROOT / "requirements/typescript/package.json").read_text(encoding="utf-8"))
    assert told == asked | set(node["dependencies"])


def test_every_file_that_code_names_is_in_the_repository() -> None:
    """In docstrings and comments; what is made while it runs is named without its folder."""
    tops = "|".join((*PRODUCT, "tools", "docs", "examples", "migrations", "tests"))
    named = re.compile(rf"(?<![\w/.-])(?:{tops})/[\w/.-]+\.(?:py|md|sql|yaml|in)\b")
    files = [path for path in ROOT.glob("[!.]*/**/*.py") if path.parts[len(ROOT.parts)] not in {"build", "dist"}]
    found = {(path.name, name) for path in files for name in named.findall(path.read_text(encoding="utf-8"))}
    assert sorted(pair for pair in found if not (ROOT / pair[1]).exists()) == []


def test_the_platforms_that_are_told_are_those_that_make_platforms_checks() -> None:
    page = (ROOT / "docs/installing.md").read_text(encoding="utf-8")
    table = rows_of(page.partition("| platform | Rollway |")[2].partition("\n\n")[0])
    assert table == [[found.name, found.base.said, found.runtime.said] for found in PLATFORMS]
