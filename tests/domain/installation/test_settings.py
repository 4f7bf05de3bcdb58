"""Settings from the environment: what is left out, what is wrong, and what no message shows."""

import pytest
from pydantic import Field, ValidationError

from domain.installation.settings import (
    REPLICA_PORTS,
    RIGHT_PORTS,
    LogLimits,
    Retention,
    Settings,
    absolute,
    ports_between,
)
from domain.text.errors import InvalidInputError


class Door(Settings):
    url: str = Field(validation_alias="DOOR_URL", description="where the door is", min_length=4)
    width: int = Field(default=80, validation_alias="DOOR_WIDTH", description="whole centimetres")
    code: int | None = Field(default=None, validation_alias="DOOR_CODE", description="digits", repr=False)


def test_variables_that_are_not_set_or_empty_leave_the_defaults() -> None:
    read = Door.from_environment({"DOOR_URL": "http://door", "DOOR_WIDTH": "", "WINDOW_WIDTH": "120"})
    assert read == Door(url="http://door", width=80, code=None)
    assert Door.from_environment({"DOOR_URL": "http://door", "DOOR_WIDTH": "90", "DOOR_CODE": "7"}).width == 90


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "DOOR_URL is not set; it is where the door is, or run 'rollway up'"),
        ({"DOOR_URL": ""}, "DOOR_URL is not set; it is where the door is, or run 'rollway up'"),
        ({"DOOR_URL": "a"}, "DOOR_URL must be where the door is, not 'a'"),
        ({"DOOR_URL": "http://door", "DOOR_WIDTH": "wide"}, "DOOR_WIDTH must be whole centimetres, not 'wide'"),
        ({"DOOR_URL": "a", "DOOR_WIDTH": "wide"}, "DOOR_URL must be where the door is, not 'a'"),
        ({"DOOR_URL": "http://door", "DOOR_CODE": "secret"}, "DOOR_CODE must be digits"),
    ],
)
def test_the_first_variable_that_is_wrong_is_named_with_what_would_be_right(
    environment: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        Door.from_environment(environment)
    assert refused.value.message == message
    assert refused.value.detail == {"field": message.split(maxsplit=1)[0]}


def test_a_megabyte_of_a_log_has_1024_kilobytes() -> None:
    assert (LogLimits(megabytes=0.5).most_bytes, LogLimits(ended_megabytes=2).most_ended_bytes) == (524_288, 2_097_152)


@pytest.mark.parametrize("path", ["/", "/etc/rollway/keys"])
def test_a_path_that_begins_with_a_slash_is_the_same_everywhere(path: str) -> None:
    assert absolute(path) == path
    with pytest.raises(ValueError, match="keys"):
        absolute(f"keys{path}")


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ("20000-29999", REPLICA_PORTS),
        ("1024-1323", range(1024, 1324)),
        ("32468-32767", range(32_468, 32_768)),
        ("1024-32767", range(1024, 32_768)),
    ],
)
def test_ports_for_replicas_are_a_range_with_both_ends(text: str, ports: range) -> None:
    assert ports_between(text) == ports


@pytest.mark.parametrize("text", ["1024-1322", "1023-1400", "32400-32768", "29999-20000", "20000"])
def test_too_few_ports_and_those_of_outgoing_connections_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=RIGHT_PORTS if "-" in text else "invalid literal"):
        ports_between(text)


VARIABLES = [
    (LogLimits, "megabytes", "ROLLWAY_LOG_MEGABYTES", 10, "0.01", "100000", "0.009", "100000.1"),
    (LogLimits, "files", "ROLLWAY_LOG_FILES", 2, "1", "100", "0", "101"),
    (LogLimits, "ended_days", "ROLLWAY_KEEP_LOGS_DAYS", 7, "0", "36500", "-0.1", "36500.1"),
    (LogLimits, "ended_megabytes", "ROLLWAY_KEEP_LOGS_MEGABYTES", 1000, "0", "100000000", "-0.1", "100000000.1"),
    (Retention, "history_days", "ROLLWAY_KEEP_HISTORY_DAYS", 30, "0", "36500", "-0.1", "36500.1"),
    (Retention, "history_count", "ROLLWAY_KEEP_HISTORY_COUNT", 200, "1", "1000000", "0", "1000001"),
    (Retention, "routes_days", "ROLLWAY_KEEP_ROUTES_DAYS", 7, "0", "36500", "-0.1", "36500.1"),
    (Retention, "routes_count", "ROLLWAY_KEEP_ROUTES_COUNT", 50, "1", "1000000", "0", "1000001"),
    (Retention, "rollouts_days", "ROLLWAY_KEEP_ROLLOUTS_DAYS", 30, "0", "36500", "-0.1", "36500.1"),
    (Retention, "rollouts_count", "ROLLWAY_KEEP_ROLLOUTS_COUNT", 20, "1", "1000000", "0", "1000001"),
    (Retention, "revisions_days", "ROLLWAY_KEEP_REVISIONS_DAYS", 90, "0", "36500", "-0.1", "36500.1"),
    (Retention, "revisions_count", "ROLLWAY_KEEP_REVISIONS_COUNT", 20, "1", "1000000", "0", "1000001"),
    (Retention, "commands_days", "ROLLWAY_KEEP_COMMANDS_DAYS", 7, "0.001", "36500", "0.0009", "36500.1"),
    (Retention, "destroyed_days", "ROLLWAY_KEEP_DESTROYED_DAYS", 30, "0", "36500", "-0.1", "36500.1"),
    (Retention, "ended_days", "ROLLWAY_KEEP_ENDED_DAYS", 30, "0", "36500", "-0.1", "36500.1"),
]


@pytest.mark.parametrize(
    ("settings", "name", "variable", "default", "least", "most", "below", "above"),
    VARIABLES,
    ids=[variable for _, _, variable, *_ in VARIABLES],
)
def test_the_documented_default_and_limits_of_a_variable(
    settings: type[Settings], name: str, variable: str, default: float, least: str, most: str, below: str, above: str
) -> None:
    assert getattr(settings.from_environment({}), name) == default
    assert getattr(settings.from_environment({variable: least}), name) == float(least)
    assert getattr(settings.from_environment({variable: most}), name) == float(most)
    for wrong in (below, above):
        right = rf"{variable} must be a number .*from {least} to {most}.*, not '{wrong}'$"
        with pytest.raises(InvalidInputError, match=right):
            settings.from_environment({variable: wrong})


def test_settings_are_read_once_and_stay() -> None:
    limits = LogLimits()
    with pytest.raises(ValidationError):
        limits.files = 3  # type: ignore[misc]
