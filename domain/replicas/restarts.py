"""What the revision is called that runs once more what another one runs: "v3" -> "v3.r2" -> "v3.r3"."""

import re
from collections.abc import Collection

_RESTART = re.compile(r"\.r([1-9][0-9]*)$")
_MOST = 63
"""Letters in the name of a revision."""


def restarted_name(name: str, taken: Collection[str]) -> str:
    """The next name that is not taken yet; one that is too long is cut."""
    found = _RESTART.search(name)
    number = int(found[1]) + 1 if found else 2
    while (next_name := _numbered(name, number)) in taken:
        number += 1
    return next_name


def is_restart(name: str, of: str) -> bool:
    """Whether `name` is what a restart of the revision `of` would be called."""
    found = _RESTART.search(name)
    return found is not None and name == _numbered(of, int(found[1])) != of


def _numbered(name: str, number: int) -> str:
    suffix = f".r{number}"
    return _RESTART.sub("", name)[: _MOST - len(suffix)].rstrip("-.") + suffix
