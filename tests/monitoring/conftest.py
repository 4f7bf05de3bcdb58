from collections.abc import Iterator

import pytest

from tests.support.faults.watched import Watched, watched_fleet


@pytest.fixture(scope="module")
def watched(module_database: str, module_redis: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """One fleet for all tests of a module, with a real Prometheus that watches it, where there is one."""
    with watched_fleet(module_database, module_redis, tmp_path_factory.mktemp("watched")) as made:
        yield made
