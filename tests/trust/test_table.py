"""docs/trust.md, read: each word of its table leads to a test that there is, and every role has its thief."""

import ast
import re
from pathlib import Path

import pytest

from domain.installation.tokens import Role
from runtime.process.account_pool import POOLS

PAGE = Path(__file__).parents[2] / "docs" / "trust.md"
TEXT = PAGE.read_text(encoding="utf-8").partition("## Who can do what")[2].partition("\n## ")[0]
ROWS = [[cell.strip() for cell in line[1:-1].split("|")] for line in TEXT.splitlines() if line.startswith("| ")]
LEADS = dict(re.findall(r"^\[(\w+)\]: (\S+)$", TEXT, re.MULTILINE))
CELL = re.compile(r"\[[^]]+\]\[(\w+)\]")


def shown_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS[1:], ids=lambda row: str(row[0]))
def test_each_cell_is_shown_by_a_test(row: list[str]) -> None:
    assert len(row) == len(ROWS[0])
    for cell in row[1:]:
        found = CELL.fullmatch(cell)
        assert found or not cell, f"{cell} leads to no test"
        if found:
            path, _, name = LEADS[found[1]].partition("#")
            assert name in shown_in((PAGE.parent / path).resolve()), f"there is no {name} in {path}"


def test_no_lead_is_left_over() -> None:
    named = {name for row in ROWS[1:] for cell in row[1:] for name in CELL.findall(cell)}
    assert named == set(LEADS)


def test_the_rules_for_a_firewall_are_for_the_number_of_every_account() -> None:
    text = PAGE.read_text(encoding="utf-8")
    of_all, of_few = (f"{each.numbers.start}{{}}{each.numbers.stop - 1}" for each in POOLS)
    assert f"meta skuid != {of_all.format('-')} accept" in text
    assert f"from {of_few.format(' to ')}" in text


@pytest.mark.parametrize("role", Role)
def test_every_role_stands_in_the_table(role: Role) -> None:
    assert any(str(role) in row[0] for row in ROWS[1:])
