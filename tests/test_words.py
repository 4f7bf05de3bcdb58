"""One word means one thing: each word of docs/words.md lives where the page says, and second names do not come back."""

import re
from functools import cache
from pathlib import Path

import pytest

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


def test_every_word_has_one_row_and_one_sentence() -> None:
    assert len(WORDS) == len(set(WORDS)) >= 30
    assert [meaning for _, meaning, _ in ROWS if ". " in meaning or meaning[0].isupper() or meaning.endswith(".")] == []
    rows = re.findall(r"^\| (?!word|-)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == len(ROWS), "a row that this test cannot read"


@pytest.mark.parametrize("places", [pytest.param(places, id=words) for words, _, places in ROWS])
def test_every_word_lives_where_the_page_says(places: str) -> None:
    found = _PLACE.findall(places)
    assert found, places
    for name, shown, path in found:
        assert shown == path
        assert re.search(rf"\b{name}\b", (ROOT / path).read_text(encoding="utf-8")), f"{name} is not in {path}"


@pytest.mark.parametrize("word", WORDS)
def test_every_word_is_used_in_more_than_one_file_of_the_code(word: str) -> None:
    said = re.compile(rf"\b{word}(s|d|ed|es)?\b", re.IGNORECASE)
    assert len([name for name, text in texts().items() if name.split("/")[0] in PRODUCT and said.search(text)]) > 1


def test_the_first_thirty_words_are_the_core() -> None:
    core = PAGE.read_text(encoding="utf-8").partition("## The core")[2].partition("\n## ")[0]
    assert len(_ROW.findall(core)) == 30


@pytest.mark.parametrize("pattern", SECOND_NAMES)
def test_no_second_name_comes_back(pattern: str) -> None:
    instead, elsewhere = SECOND_NAMES[pattern]
    search = re.compile(rf"\b({pattern})\b", re.IGNORECASE)
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts().items()
        if not name.startswith(elsewhere)
        for number, line in enumerate(text.splitlines(), 1)
        if search.search(line.replace("_", " ").replace("-", " "))
    ]
    assert found == [], f"say {instead}"
