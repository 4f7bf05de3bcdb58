"""One word means one thing: each word of docs/words.md lives where the page says, and second names do not come back."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from api.people.doors import DOORS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "words.md"
PRODUCT = {"domain", "db", "runtime", "traffic", "tasks", "api", "cli", "stack"}

_ROW = re.compile(r"^\| (?!word \|)([a-z, ]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_PLACE = re.compile(r"(?:`(\w+)` in )?\[([\w/.]+)\]\(\.\./([\w/.]+)\)")

ROWS = _ROW.findall(PAGE.read_text(encoding="utf-8"))
WORDS = [word for words, _, _ in ROWS for word in words.split(", ")]

PROXIES = (
    "tools/bench/zero_loss/traefik.py",
    "tests/support/certificates/http3_caller.py",
    "tests/support/proxies/proxies.py",
    "tests/support/proxies/streaming.py",
    "tests/support/proxies/traefik.py",
    "traffic/",
    "tests/traffic/",
    "tests/api/",
    "api/proxies/protobuf.py",
    "requirements/envoy_api.py",
    "docs/proxies.md",
    "docs/traffic.md",
    "docs/decisions/0040-one-stream-for-each-envoy.md",
)
"""Where Envoy's and Traefik's own words are used."""

TRACES = (
    "tasks/telemetry/tracing.py",
    "tests/e2e/services/test_traces.py",
    "tests/tasks/worker/test_tracing.py",
    "docs/watching.md",
    "tools/reference/environment.py",
    "docs/reference/environment.md",
)
"""Where OpenTelemetry's own variables are named."""

SECOND_NAMES: dict[str, tuple[str, tuple[str, ...]]] = {
    r"endpoints?": ("a deployment, or the upstream of a proxy", (*PROXIES, *TRACES)),
    r"lost (route|replica)s?": ("failed, sick or replaceable; only hosts are lost", ()),
    r"(route|replica)s?( \w+){0,2} (is|are|was|were) lost": ("failed, sick or replaceable; only hosts are lost", ()),
    r"sweeper|sweep for (states|rows)|findings for each sweep": ("the audit", ()),
    r"(own|new|green|old|foreign|target)\.(own|old)": ("target and foreign", ()),
    r"wake mark|marks? in Redis": ("the key of a queued event; only due_at is a mark", ()),
    r"leaves? word|left word": ("a note beside the lock", ()),
    r"law \d+|design\.md|the (design|issue)(?! of)|house review|moonshots?|shared/\w+": (
        "here what a reader must know: that page is not in the repository",
        (),
    ),
}
"""Patterns, what to say instead, and the folders where the word means something else."""


@cache
def texts() -> dict[str, str]:
    """Code and prose by its path; this list of second names is left out."""
    suffixes = ("py", "md", "sql", "mako", "yaml", "yml")
    files = {file for suffix in suffixes for file in (*ROOT.glob(f"[!.]*/**/*.{suffix}"), *ROOT.glob(f"*.{suffix}"))}
    files |= {ROOT / "Makefile", ROOT / "pyproject.toml"}
    names = {str(file.relative_to(ROOT)): file for file in sorted(files - {Path(__file__)})}
    return {
        name: file.read_text(encoding="utf-8")
        for name, file in names.items()
        if name.split("/")[0] not in {"build", "dist"}
    }


@cache
def spoken() -> dict[str, frozenset[str]]:
    """The words of each file of the product, in small letters."""
    product = {name: text for name, text in texts().items() if name.split("/")[0] in PRODUCT}
    return {name: frozenset(re.findall(r"\w+", text.lower())) for name, text in product.items()}


@cache
def plain_texts() -> dict[str, str]:
    """Code and prose with a space in place of each line and underscore."""
    return {name: text.replace("_", " ").replace("-", " ") for name, text in texts().items()}


def test_every_word_has_one_row_and_one_sentence() -> None:
    assert len(WORDS) == len(set(WORDS)) >= 30
    assert [meaning for _, meaning, _ in ROWS if ". " in meaning or meaning[0].isupper() or meaning.endswith(".")] == []
    rows = re.findall(r"^\| (?!word|people|-)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == len(ROWS) + len(_INSTEAD.findall(PAGE.read_text(encoding="utf-8"))), (
        "a row that this test cannot read"
    )


@pytest.mark.parametrize("places", [pytest.param(places, id=words) for words, _, places in ROWS])
def test_every_word_lives_where_the_page_says(places: str) -> None:
    found = _PLACE.findall(places)
    assert found, places
    for name, shown, path in found:
        assert shown == path
        assert re.search(rf"\b{name}\b", (ROOT / path).read_text(encoding="utf-8")), f"{name} is not in {path}"


@pytest.mark.parametrize("word", WORDS)
def test_every_word_is_used_in_more_than_one_file_of_the_code(word: str) -> None:
    *before, last = word.split()
    forms = {f"{last}{ending}" for ending in ("", "s", "d", "ed", "es")}
    assert len([name for name, words in spoken().items() if forms & words and words.issuperset(before)]) > 1


def test_the_first_thirty_words_are_the_core() -> None:
    core = PAGE.read_text(encoding="utf-8").partition("## The core")[2].partition("\n## ")[0]
    assert len(_ROW.findall(core)) == 30


_INSTEAD = re.compile(r'^\| ([^|]+) \| ("[^|]+") \|$', re.MULTILINE)
NOT_FOR_PEOPLE = {
    phrase: word
    for word, phrases in _INSTEAD.findall(PAGE.read_text(encoding="utf-8"))
    for phrase in re.findall(r'"([^"]+)"', phrases)
}
"""Phrases that people do not read, each with the word that stands in its place."""


def read_by_people() -> Iterator[tuple[str, str]]:
    """Each text of the page, of help and of the program's sentences, with its place."""
    for file in sorted((ROOT / "api/people/page").rglob("*.html")):
        yield file.name, re.sub(r"<[^>]+>", "\n", file.read_text(encoding="utf-8"))
    for file in sorted((ROOT / "api/people/page").rglob("*.js")):
        code = re.sub(r"/\*.*?\*/|(?<!:)//[^\n]*", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        yield from ((file.name, text) for text in re.findall(r"\"(?:[^\"\\\n]|\\.)*\"|`(?:[^`\\]|\\.)*`", code))
    yield "command-line.md", (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")
    for door in DOORS.values():
        yield door.path, door.label
    for name, text in texts().items():
        if name.endswith(".py") and name.split("/")[0] in PRODUCT:
            yield from ((name, sentence) for sentence in sentences(ast.parse(text)) if "event: begun" not in sentence)


def sentences(tree: ast.Module) -> Iterator[str]:
    """The texts with a space in a module, except docstrings and statements of SQL."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in prose or " " not in (text := str(node.value)):
            continue
        if not re.search(r"\b(SELECT|INSERT INTO|UPDATE|FROM)\b", text):
            yield text


def test_what_people_read_is_in_their_words() -> None:
    search = {phrase: re.compile(rf"\b{phrase}\b(?! (?:out|for)\b)", re.IGNORECASE) for phrase in NOT_FOR_PEOPLE}
    assert len(search) > 20
    found = [
        f"{place}: {phrase!r} is {NOT_FOR_PEOPLE[phrase]!r} for people: {' '.join(text.split())[:100]}"
        for place, text in read_by_people()
        for phrase, pattern in search.items()
        if pattern.search(text)
    ]
    assert found == []


@pytest.mark.parametrize("pattern", SECOND_NAMES)
def test_no_second_name_comes_back(pattern: str) -> None:
    instead, elsewhere = SECOND_NAMES[pattern]
    search = re.compile(rf"\b({pattern})\b", re.IGNORECASE)
    found = [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group(0)}"
        for name, text in plain_texts().items()
        if not name.startswith(elsewhere)
        for match in search.finditer(text)
    ]
    assert found == [], f"say {instead}"
