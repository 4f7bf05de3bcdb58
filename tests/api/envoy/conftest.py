"""A proxy that listens for TLS too, and an authority, for tests of what it shows."""

from collections.abc import Iterator

import pytest

from tests.support.certificates.authorities import Authority
from tests.support.certificates.secured import KEY
from tests.support.proxies.edge import Edge, api_process, edge_of
from tests.support.stack.ports import free_port


@pytest.fixture(scope="module")
def tls_port() -> int:
    """The port where proxies listen for TLS."""
    return free_port()


@pytest.fixture(scope="module")
def secure_edge(
    module_database: str, module_redis: str, tmp_path_factory: pytest.TempPathFactory, tls_port: int
) -> Iterator[Edge]:
    """An api process and an Envoy that it tells, with that door."""
    folder = tmp_path_factory.mktemp("edge")
    own = {"ROLLWAY_TLS_PORT": str(tls_port), "ROLLWAY_TLS_HOST": "127.0.0.1", "ROLLWAY_CERTIFICATE_KEY": KEY}
    api = api_process(module_database, module_redis, folder, **own)
    with edge_of(api, module_database, module_redis, folder) as made:
        yield made


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.make()
