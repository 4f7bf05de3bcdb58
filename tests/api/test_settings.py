"""Where the server for proxies listens."""

import pytest

from api.settings import ApiSettings
from domain.errors import InvalidInputError


@pytest.mark.parametrize("port", ["0", "-1", "65536", "http", "7070.5"])
def test_a_port_that_does_not_exist_is_named(port: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^ROLLWAY_API_PORT must be a port from 1 to 65535, not '") as refused:
        ApiSettings.from_environment({"ROLLWAY_API_PORT": port})
    assert refused.value.detail == {"field": "ROLLWAY_API_PORT"}


def test_an_empty_variable_counts_as_not_set() -> None:
    settings = ApiSettings.from_environment({"ROLLWAY_API_PORT": "", "ROLLWAY_API_HOST": "", "host": "a", "port": "1"})
    assert (settings.host, settings.port) == ("127.0.0.1", 7070)
    settings = ApiSettings.from_environment({"ROLLWAY_API_PORT": "80", "ROLLWAY_API_HOST": "0.0.0.0"})
    assert (settings.host, settings.port) == ("0.0.0.0", 80)
