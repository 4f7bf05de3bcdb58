from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.home.folder import Home
from tests.support.stack.small_stack import SmallStack


@pytest.fixture
def small_stack(tmp_path: Path) -> Iterator[SmallStack]:
    """A small stack in a private folder; down at the end, whatever the test did to it."""
    private = tmp_path / "private"
    private.mkdir(mode=0o700)  # pytest's own folders are private too: root must not need to open a parent
    stack = SmallStack(Home(private / ".rollway"))
    yield stack
    stack.down()
