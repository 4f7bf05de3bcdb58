"""Settings of the server for people: where it listens, and how much it lets one token ask."""

from pydantic import Field

from domain.installation.settings import Settings

PEOPLE_PORT = 7072


class PeopleSettings(Settings):
    """Every request shows a token, on this machine too."""

    host: str = Field("127.0.0.1", validation_alias="ROLLWAY_PEOPLE_HOST", description="an address of this machine")
    """Where it listens; beyond 127.0.0.1 put TLS in front of it, since tokens travel in requests."""
    port: int = Field(
        PEOPLE_PORT, ge=1, le=65_535, validation_alias="ROLLWAY_PEOPLE_PORT", description="a port from 1 to 65535"
    )
    """Where it listens."""
    rate: float = Field(
        50,
        gt=0,
        le=100_000,
        validation_alias="ROLLWAY_PEOPLE_RATE",
        description="a number of requests a second, more than 0 and up to 100000",
    )
    """Requests a second that one token may make for long; four times as many at once. At 50 its plans may take 10 s of
    the processor at once, and 0.25 s each second for long; at another rate so much more or less."""
