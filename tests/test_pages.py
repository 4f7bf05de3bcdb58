"""Whoever reads finds the way: what pages name exists, links lead somewhere, and each page is near the index."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from cli.main import app
from domain.commands.base import QUERIES
from domain.commands.registry import COMMANDS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = sorted(path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?<=\n\n)((?: {4}.*\n)+)")
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
_PATH = re.compile(r"(?:[\w.-]+/)+[\w.-]*\w\.(?:py|md|yaml|yml|toml|txt)")


@cache
def code_of(page: Path) -> tuple[str, ...]:
    """Lines of code blocks, and what stands between backticks."""
    return tuple(_code_of(page))


def _code_of(page: Path) -> Iterator[str]:
    text = page.read_text(encoding="utf-8")
    for _, block in _FENCE.findall(text):
        yield from block.splitlines()
    prose = _FENCE.sub("", text)
    for block in _INDENTED.findall(prose):
        yield from (line.strip() for line in block.splitlines())
    yield from _SPAN.findall(prose)


def named(pattern: str, page: Path) -> set[str]:
    return {match for line in code_of(page) for match in re.findall(pattern, line)}


@every_page
def test_every_make_target_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert named(r"^make ([a-z][a-z-]*)", page) <= targets


@cache
def rollway() -> Any:
    """The whole program, which takes a while to put together."""
    return typer.main.get_command(app)


def options_of(command: Any) -> set[str]:
    """Those of a command, or of all commands of a group."""
    alone = {option for parameter in command.params for option in parameter.opts}
    return alone.union(*map(options_of, getattr(command, "commands", {}).values()))


@every_page
def test_every_command_exists_with_the_options_it_is_shown_with(page: Path) -> None:
    group = rollway()
    for line in code_of(page):
        found = re.match(r"(?:\.venv/bin/)?rollway ([a-z][a-z-]*)(.*)", line.partition("#")[0])
        if found is None:
            continue
        assert found[1] in group.commands, line
        options = options_of(group.commands[found[1]])
        assert set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", found[2])) <= options | {"--help"}, line


def test_every_command_has_help_and_json() -> None:
    for name, command in rollway().commands.items():
        assert command.help, name
        assert "--json" in options_of(command), name


@every_page
def test_every_task_exists(page: Path) -> None:
    assert named(r"^rollway\.(?!localhost)[a-z_]+$", page) <= {*COMMANDS, *QUERIES}


def links_of(page: Path) -> list[tuple[Path, str]]:
    """What the page links to inside of the repository: a file or folder, and the anchor in it."""
    links = [link.partition("#") for link in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    return [((page.parent / path).resolve() if path else page, anchor) for path, _, anchor in links]


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """Those that GitHub makes of headings: small letters, no marks, a dash for a blank."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
    said = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return frozenset(re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in said)


@every_page
def test_every_link_leads_somewhere(page: Path) -> None:
    assert [str(path) for path, _ in links_of(page) if not path.exists()] == []
    to_pages = [(path, anchor) for path, anchor in links_of(page) if anchor and path.suffix == ".md"]
    assert [f"{path}#{anchor}" for path, anchor in to_pages if anchor not in anchors_of(path)] == []


@every_page
def test_a_decision_is_cited_by_its_own_number(page: Path) -> None:
    cited = re.findall(r"\[(?:[Dd]ecision )?0*(\d+)\]\((?:[\w./-]*/)?0*(\d+)-[a-z]", page.read_text(encoding="utf-8"))
    assert [pair for pair in cited if pair[0] != pair[1]] == []


INDEX = ROOT / "docs/README.md"


def test_every_page_is_two_clicks_from_the_index() -> None:
    first = {path for path, _ in links_of(INDEX) if path.suffix == ".md"}
    second = {path for page in first for path, _ in links_of(page) if page.name == "README.md"}
    assert [str(page.relative_to(ROOT)) for page in PAGES if page not in first | second | {INDEX, README}] == []


def test_the_index_names_each_page_once() -> None:
    named = [path for path, _ in links_of(INDEX)]
    assert sorted(named) == sorted(set(named))


@every_page
def test_every_file_exists(page: Path) -> None:
    files = {path for line in code_of(page) for path in _PATH.findall(line) if "://" not in line}
    made_there = set(re.findall(r"^--- /dev/null\n\+\+\+ (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert sorted(path for path in files - made_there if not (ROOT / path).exists()) == []


@cache
def functions_of(file: Path) -> frozenset[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@every_page
def test_every_test_exists(page: Path) -> None:
    pairs = _TEST.findall(page.read_text(encoding="utf-8"))
    gone = {pair for pair in pairs if not (ROOT / pair[0]).exists() or pair[1] not in functions_of(ROOT / pair[0])}
    assert gone == set()


def test_decisions_are_numbered_without_a_gap_as_their_files_are() -> None:
    pages = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    numbers = [int(page.name[:4]) for page in pages]
    assert numbers == list(range(1, len(pages) + 1))
    titles = [page.read_text(encoding="utf-8").partition("\n")[0] for page in pages]
    assert [title for number, title in zip(numbers, titles, strict=True) if not title.startswith(f"# {number}. ")] == []


def test_every_decision_stands_once_in_the_index_under_its_title() -> None:
    folder = ROOT / "docs/decisions"
    titles = {
        page.name: page.read_text("utf-8").partition("\n")[0].partition(". ")[2] for page in folder.glob("[0-9]*.md")
    }
    rows = re.findall(
        r"^\| (\d+) \| \[([^]]+)\]\((\S+)\) \| .+ \|$", (folder / "README.md").read_text("utf-8"), re.MULTILINE
    )
    assert sorted((name, title) for _, title, name in rows) == sorted(titles.items())
    assert [name for number, _, name in rows if int(name[:4]) != int(number)] == []


@every_page
def test_no_line_is_too_long_to_review(page: Path) -> None:
    prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
    assert [line for line in prose.splitlines() if len(line) > 160 and not line.startswith("|")] == []
