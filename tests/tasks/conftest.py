from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.process import ProcessRuntime, stop_all
from tests.support.runtimes import processes_of


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """For replicas; none is left running at the end."""
    yield tmp_path
    stop_all(tmp_path, grace_seconds=0.1)
    assert processes_of(tmp_path) == []


@pytest.fixture
def runtimes(home: Path) -> dict[str, ProcessRuntime]:
    return {"process": ProcessRuntime(home)}
