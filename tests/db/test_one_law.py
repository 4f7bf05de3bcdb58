"""What must be written in one place only is: locking deployments, counting up versions, and the lists of statuses."""

import re
from pathlib import Path

import pytest

DB = Path(__file__).parents[2] / "db"
LOCKING = {"db/locking/row_locks.py"}
COUNTING = {"db/locking/row_locks.py"}
"""Steps of cycles and commands are counted by the domain, and their versions copied like any other value."""


def written_in(pattern: str) -> set[str]:
    found = re.compile(pattern)
    return {str(path.relative_to(DB.parent)) for path in DB.rglob("*.py") if found.search(path.read_text())}


@pytest.mark.parametrize(
    ("what", "places"),
    [
        pytest.param(r"\bFOR\s+NO\s+KEY\s+UPDATE\b", LOCKING, id="locking deployments"),
        pytest.param(r"\bversion\s*=\s*(\w+\.)?version\s*\+", COUNTING, id="counting up versions"),
        pytest.param(r"\bstatus\s+(NOT\s+)?IN\s*\(\s*'", set(), id="lists of statuses by hand"),
        pytest.param(r"\bstatus\s*(=|<>|!=)\s*(ANY|ALL)\b", set(), id="lists of statuses that travel as parameters"),
        pytest.param(r"\bstatus\s*(=|<>)\s*'\w+'\s+(OR|AND)\s+(\w+\.)?status\s*(=|<>)", set(), id="lists in disguise"),
    ],
)
def test_it_is_written_in_one_place(what: str, places: set[str]) -> None:
    assert written_in(what) == places
