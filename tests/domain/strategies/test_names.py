"""What a strategy is called is known where it stands: nothing else decides by its name."""

import re
from pathlib import Path

from domain.strategies.builtin import STRATEGIES

ROOT = Path(__file__).parents[3]
PRODUCT = ("domain", "db", "runtime", "traffic", "tasks", "api", "cli", "stack")
KINDS = (".py", ".js", ".html")
NAMES = "|".join(STRATEGIES)
QUOTED = rf"""["'`]({NAMES})["'`]"""
DECIDES = re.compile(rf"""(==|!=|<>|\bin\b|\bcase\b|\bIN\b)\s*[\[({{]*\s*{QUOTED}|{QUOTED}[^\]]*\]\.includes""")


def test_nothing_outside_of_the_strategies_compares_their_names() -> None:
    files = [path for room in PRODUCT for path in (ROOT / room).rglob("*") if path.suffix in KINDS]
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in files
        if (ROOT / "domain/strategies") not in path.parents
        for line in path.read_text(encoding="utf-8").splitlines()
        if DECIDES.search(line)
    ]
    assert found == []
    assert DECIDES.search('["blue_green", "canary"].includes(d.rollout.strategy)')
    assert DECIDES.search("WHERE strategy IN ('canary')")
    assert DECIDES.search("if policy.strategy == 'canary':")
    assert DECIDES.search('d.rollout.strategy === "blue_green"')
