"""The reading order of docs/architecture.md: all that decides a rolling update, each file after those that it uses."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MINUTES, WORDS_A_MINUTE = 45, 250
ROOMS = ("domain/model/", "domain/strategies/", "domain/cycle/", "domain/handlers/")
EXPLAIN_THEMSELVES = (
    *(
        "domain.autoscaling.rule",
        "domain.model.canary",
        "domain.model.lifecycle_events",
        "domain.model.deployment",
        "domain.model.preparation",
    ),
    *("domain.devices.room", "domain.strategies.in_place"),  # they change nothing where no revision needs devices
    "domain.strategies.weighted",  # no strategy but the canary says anything there
)
REGISTRY = "domain.strategies.builtin"


def rows() -> list[tuple[int, list[str]]]:
    """The minutes of each row, and its files."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    section = page.partition("### Decide")[2].partition("\n### ")[0]
    found = re.findall(r"^\| (\d+) \| ([^|]*) \|", section, re.MULTILINE)
    return [(int(minutes), re.findall(r"\[(domain/[\w/]+\.py)\]", files)) for minutes, files in found]


def test_it_takes_three_quarters_of_an_hour() -> None:
    """At the pace of prose, its examples and pictures included."""
    files = [file for _, of_row in rows() for file in of_row]
    assert sum(minutes for minutes, _ in rows()) <= MINUTES
    assert sum(len((ROOT / file).read_text(encoding="utf-8").split()) for file in files) <= MINUTES * WORDS_A_MINUTE
    assert [file for file in files if not file.startswith(ROOMS)] == []


def test_each_file_uses_only_what_was_read_before_it() -> None:
    known = {REGISTRY, *EXPLAIN_THEMSELVES}
    for file in (file for _, of_row in rows() for file in of_row):
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        taken = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        used = {module for module in taken if module.startswith("domain.") and not module.startswith("domain.text.")}
        assert used - known == set(), file
        known.add(file.removesuffix(".py").replace("/", "."))
