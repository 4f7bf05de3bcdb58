"""What is kept of the past, and for how long: a rule in words that `db.retention` says in SQL."""

from pydantic import Field

from domain.installation.settings import Settings

_MOST_DAYS = 36_500
_MOST_ROWS = 1_000_000


def _days(variable: str, default: float, least: float = 0) -> float:
    right = f"a number of days from {least:g} to {_MOST_DAYS}; 0.01 is a quarter of an hour"
    field: float = Field(default, ge=least, le=_MOST_DAYS, validation_alias=variable, description=right)
    return field


def _count(variable: str, default: int) -> int:
    right = f"a number from 1 to {_MOST_ROWS}"
    field: int = Field(default, ge=1, le=_MOST_ROWS, validation_alias=variable, description=right)
    return field


class Retention(Settings):
    """The days that something is kept, and how many of it are kept of each deployment, however old they are.

    Cut is what is older than its days, is not among the newest of its deployment, and that nothing needs:

        history      a record       not the last one, which the next may merge into; not of the open rollout
        routes       a replica      terminated or failed, and stopped; not of the open rollout
        rollouts     with its steps ended; no way back leads along it; no record and no replica names it
        revisions                   not current, deploying or failing now; no rollout and no replica names it
        commands     a request id   by its age alone: sent again later, it is a new request
        destroyed    a deployment   all of it, by the days since its end alone
        ended        a token that has expired, a freeze that is over, a host that has been down: by these days alone

    A way back leads along the newest completed rollouts, along the last one that led to the current revision, and along
    the last rollout to each revision that one of these names: so `undo` and `retry` do what they would have done.
    The steps of a rollout that is kept are all kept: each can be decided again.
    """

    history_days: float = _days("ROLLWAY_KEEP_HISTORY_DAYS", 30)
    """For how long a record of the timeline is kept."""
    history_count: int = _count("ROLLWAY_KEEP_HISTORY_COUNT", 200)
    """How many records of each deployment, however old."""
    routes_days: float = _days("ROLLWAY_KEEP_ROUTES_DAYS", 7)
    """For how long a replica that has stopped is kept."""
    routes_count: int = _count("ROLLWAY_KEEP_ROUTES_COUNT", 50)
    """How many of those of each deployment, however old."""
    rollouts_days: float = _days("ROLLWAY_KEEP_ROLLOUTS_DAYS", 30)
    """For how long a rollout that has ended is kept, with its steps."""
    rollouts_count: int = _count("ROLLWAY_KEEP_ROLLOUTS_COUNT", 20)
    """How many of those of each deployment, however old."""
    revisions_days: float = _days("ROLLWAY_KEEP_REVISIONS_DAYS", 90)
    """For how long a revision that nothing needs is kept."""
    revisions_count: int = _count("ROLLWAY_KEEP_REVISIONS_COUNT", 20)
    """How many of those of each deployment, however old."""
    commands_days: float = _days("ROLLWAY_KEEP_COMMANDS_DAYS", 7, least=0.001)
    """For how long a request id is known."""
    destroyed_days: float = _days("ROLLWAY_KEEP_DESTROYED_DAYS", 30)
    """For how long a destroyed deployment is kept."""
    ended_days: float = _days("ROLLWAY_KEEP_ENDED_DAYS", 30)
    """For how long a token that has expired is kept, a freeze that is over, and a host that is down."""
