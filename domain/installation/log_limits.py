"""Limits of log files: how big they may become, and how long they stay."""

from pydantic import Field

from domain.installation.settings import Settings

_MEGABYTE = 1024 * 1024


class LogLimits(Settings):
    """Limits of a host's logs of replicas and stack: how big they may become, and how long those of the ended stay."""

    megabytes: float = Field(
        10,
        ge=0.01,
        le=100_000,
        validation_alias="ROLLWAY_LOG_MEGABYTES",
        description="a number of megabytes from 0.01 to 100000",
    )
    """From which size a log of a replica or of the stack is begun anew while it is written."""
    files: int = Field(
        2, ge=1, le=100, validation_alias="ROLLWAY_LOG_FILES", description="a number of files from 1 to 100"
    )
    """How many files of each log there are at most, with the one that is written."""
    ended_days: float = Field(
        7,
        ge=0,
        le=36_500,
        validation_alias="ROLLWAY_KEEP_LOGS_DAYS",
        description="a number of days from 0 to 36500",
    )
    """How long the log of a replica that has ended stays, counted from its last line."""
    ended_megabytes: float = Field(
        1000,
        ge=0,
        le=100_000_000,
        validation_alias="ROLLWAY_KEEP_LOGS_MEGABYTES",
        description="a number of megabytes from 0 to 100000000",
    )
    """For the logs of all replicas of a host that have ended: when they are more, the oldest go."""

    @property
    def most_bytes(self) -> int:
        """The most bytes of one file."""
        return int(self.megabytes * _MEGABYTE)

    @property
    def most_ended_bytes(self) -> int:
        """The most bytes of all logs of replicas that have ended."""
        return int(self.ended_megabytes * _MEGABYTE)
