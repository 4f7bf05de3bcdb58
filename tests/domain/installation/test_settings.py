"""Settings from the environment: what is left out, what is wrong, and what no message shows."""

import pytest
from pydantic import Field

from domain.installation.settings import LogLimits, Settings
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
