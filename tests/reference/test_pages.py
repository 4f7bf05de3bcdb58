"""The reference is what the code says, with a meaning for every field; each example is a file that is accepted."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from cli.apply import read_file
from domain.commands.registry import COMMANDS
from domain.strategies.builtin import STRATEGIES
from domain.text.validation_errors import meanings
from tools.reference.environment import READERS
from tools.reference.file import SECTIONS
from tools.reference.models import rows_of
from tools.reference.pages import FOLDER, PAGES

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(ROOT.glob("examples/*.yaml"))
NUMBERS = (int, float, int | None)
MODELS: list[type[BaseModel]] = [
    *SECTIONS.values(),
    *(strategy.spec_model for strategy in STRATEGIES.values()),
    *COMMANDS.values(),
    *dict.fromkeys(command.answer for command in COMMANDS.values()),
]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says(name: str) -> None:
    assert (ROOT / FOLDER / name).read_text(encoding="utf-8") == PAGES[name](), "run 'make reference'"


def test_nothing_else_lies_beside_the_pages() -> None:
    assert sorted(path.name for path in (ROOT / FOLDER).iterdir()) == sorted(PAGES)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_field_says_what_it_means_and_what_may_stand_there(model: type[BaseModel]) -> None:
    assert [row.name for row in rows_of(model) if not row.meaning or row.right == "anything"] == []


@pytest.mark.parametrize("model", [model for models in READERS.values() for model in models], ids=lambda m: m.__name__)
def test_every_variable_says_what_it_means_and_what_is_right(model: type[BaseModel]) -> None:
    variables = [name for name, field in model.model_fields.items() if field.validation_alias]
    rows = {row.name: row for row in rows_of(model)}
    assert [name for name in variables if name not in meanings(model) or rows[name].right == "anything"] == []


@pytest.mark.parametrize("model", [model for models in READERS.values() for model in models], ids=lambda m: m.__name__)
def test_the_limits_of_a_variable_are_those_that_it_says(model: type[BaseModel]) -> None:
    """A message says what is right in these words, and has no others."""
    for name, field in model.model_fields.items():
        kinds = ("ge", "gt", "le", "lt")
        limits = {float(getattr(limit, kind)) for limit in field.metadata for kind in kinds if hasattr(limit, kind)}
        words = (field.description or "").partition(";")[0] if field.annotation in NUMBERS else ""
        assert {float(number) for number in re.findall(r"[0-9]+(?:\.[0-9]+)?", words)} == limits, name


def test_no_variable_of_rollway_is_left_out() -> None:
    rooms = ("api", "cli", "db", "domain", "runtime", "stack", "tasks", "traffic")
    files = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    read = {name for path in files for name in re.findall(r"\bROLLWAY_[A-Z_]+[A-Z]\b", path.read_text("utf-8"))}
    assert sorted(name for name in read if name not in PAGES["environment.md"]()) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_accepted(example: Path) -> None:
    assert read_file(str(example))


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_has_an_example_of_its_own(name: str) -> None:
    (deployment,) = read_file(str(ROOT / f"examples/{name}.yaml"))
    assert deployment.parsed_policy is not None
    assert deployment.parsed_policy.strategy == name
