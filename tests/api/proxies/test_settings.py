"""Where the server for proxies listens."""

import pytest

from api.proxy_settings import ApiSettings
from domain.text.errors import InvalidInputError


@pytest.mark.parametrize("name", ["ROLLWAY_API_PORT", "ROLLWAY_DISCOVERY_PORT"])
@pytest.mark.parametrize("port", ["0", "-1", "65536", "http", "7070.5"])
def test_a_port_that_does_not_exist_is_named(name: str, port: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"^{name} must be a port from 1 to 65535, not '") as refused:
        ApiSettings.from_environment({name: port})
    assert refused.value.detail == {"field": name}


def test_an_empty_variable_counts_as_not_set() -> None:
    settings = ApiSettings.from_environment({"ROLLWAY_API_PORT": "", "ROLLWAY_API_HOST": "", "host": "a", "port": "1"})
    assert (settings.host, settings.port) == ("127.0.0.1", 7070)
    settings = ApiSettings.from_environment({"ROLLWAY_API_PORT": "80", "ROLLWAY_API_HOST": "0.0.0.0"})
    assert (settings.host, settings.port) == ("0.0.0.0", 80)


def test_a_key_that_is_too_short_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidInputError, match="ROLLWAY_PROXY_KEY must be a secret of at least 32") as refused:
        ApiSettings.from_environment({"ROLLWAY_PROXY_KEY": "shorter than that"})
    assert "shorter" not in refused.value.message


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.5", "rollway.internal"])
def test_beyond_this_machine_there_must_be_a_key(host: str) -> None:
    with pytest.raises(InvalidInputError, match=f"ROLLWAY_PROXY_KEY is not set, and other machines reach {host}"):
        ApiSettings(host=host).refuse_strangers()
    ApiSettings(host=host, proxy_key="k" * 32).refuse_strangers()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_on_this_machine_alone_a_key_may_be_missing(host: str) -> None:
    ApiSettings(host=host).refuse_strangers()
