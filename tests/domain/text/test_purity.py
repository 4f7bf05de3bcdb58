"""The domain asks no clock, no chance and no machine: everything it knows is an argument."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

DOMAIN = Path(__file__).parents[3] / "domain"
CLOCKS = {"now", "utcnow", "today", "monotonic", "perf_counter", "uuid1", "uuid4"}
MACHINE = {
    "time",
    "random",
    "secrets",
    "os",
    "socket",
    "subprocess",
    "threading",
    "asyncio",
    "logging",
    "pathlib",
    "io",
}
ALLOWED = {"domain", "pydantic", "cronsim"}


def offences(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (imported.name for imported in names if imported.name.partition(".")[0] in MACHINE)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (module for _ in names if module.partition(".")[0] in MACHINE)
                yield from (f"{module}.{imported.name}" for imported in names if imported.name in CLOCKS)
            case ast.Attribute(attr="now", value=ast.Name(id="self")):
                pass  # a command's field
            case ast.Attribute(attr=attr) if attr in CLOCKS:
                yield attr
            case ast.Call(func=ast.Name(id="print" | "open" | "input" as name)):
                yield name


@pytest.mark.parametrize("file", sorted(DOMAIN.rglob("*.py")), ids=lambda file: str(file.relative_to(DOMAIN)))
def test_the_domain_asks_no_clock_and_no_machine(file: Path) -> None:
    assert list(offences(file.read_text())) == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import os.path",
        "from random import choice",
        "from datetime import datetime\ndatetime.now()",
        "import datetime as d\nd.datetime.utcnow()",
        "d.date.today()",
        "from uuid import uuid4",
        "print(1)",
        "open('x')",
    ],
)
def test_the_test_above_can_fail(source: str) -> None:
    assert list(offences(source))


def test_the_domain_has_files() -> None:
    assert len(list(DOMAIN.rglob("*.py"))) > 20


@pytest.mark.parametrize("file", sorted(DOMAIN.rglob("*.py")), ids=lambda file: str(file.relative_to(DOMAIN)))
def test_the_domain_needs_nothing_but_python_pydantic_and_cronsim(file: Path) -> None:
    roots = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            roots |= {imported.name.partition(".")[0] for imported in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            roots.add(node.module.partition(".")[0])
    assert {root for root in roots if root not in sys.stdlib_module_names} <= ALLOWED
