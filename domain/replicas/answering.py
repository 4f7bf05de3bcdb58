"""How long a sick replica that answers no probe, but callers, is kept: it may be busy.

it has answered no caller since it was found sick    -> no longer than every sick one, 30 s
it has                                               -> 60 s after its last answer, 5 min in all
"""

from datetime import datetime, timedelta

from domain.model.deployment import Route
from domain.model.states import RouteStatus

_AFTER_AN_ANSWER = timedelta(seconds=60)
RENEWED_BELOW = timedelta(seconds=45)
"""A replica is kept again when less of its time is left: each renewal counts up a version."""
MOST_KEPT = timedelta(minutes=5)


def kept_until(found_sick_at: datetime, answered_at: datetime) -> datetime:
    """Return until when one is kept that has answered a caller then."""
    return min(answered_at + _AFTER_AN_ANSWER, found_sick_at + MOST_KEPT)


def is_answering(route: Route) -> bool:
    """Whether it is sick and has answered callers since."""
    if route.status is not RouteStatus.UNHEALTHY or route.kept_until is None:
        return False
    return route.kept_until > route.status_changed_at
