"""The page about events names every type as it is, in the same words."""

import re

from domain.outbox.cloud_events import MEANINGS
from stack.home import project_root


def test_the_page_names_every_type_in_the_same_words() -> None:
    page = (project_root() / "docs" / "events.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| `(rollway\.[a-z_.]+)` \| (.*) \|$", page, re.MULTILINE)) == MEANINGS
