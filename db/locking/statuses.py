"""The lists of statuses in SQL, made from the enums: a status that is added there finds its place in every query.

A route's way:  provisioning -> healthy | unhealthy | degraded -> terminating -> terminated, or -> failed

    ACTIVE     provisioning, healthy, unhealthy, degraded     counts against a budget
    RUNNING                  healthy, unhealthy, degraded     has an address, and proxies may be told of it
    JUDGED                   healthy, unhealthy               a probe said so
    WELL       provisioning, healthy                          active, and nothing that must be replaced
    PRESENT    the active ones, and terminating               is in a snapshot
    GONE       terminated, failed                             is in none
    DRAINED    terminating, terminated                        a decision took it out of traffic
    TO_STOP    terminating, failed                            its replica must end, if it has not

Each is a condition on a column `status`; write `r.{ACTIVE}` where the routes are called `r`.
"""

from collections.abc import Iterable
from enum import StrEnum

from domain.model.deployment import RouteStatus


def words(members: Iterable[StrEnum]) -> str:
    """The values of statuses as a list of SQL literals: 'a', 'b'."""
    return ", ".join(f"'{member.value}'" for member in members)


_INACTIVE = [status for status in RouteStatus if not status.is_active]
_RUNNING = [status for status in RouteStatus if status.is_active and status is not RouteStatus.PROVISIONING]
_GONE = [status for status in _INACTIVE if status is not RouteStatus.TERMINATING]
_DRAINED = [status for status in _INACTIVE if status is not RouteStatus.FAILED]
_TO_STOP = [status for status in _INACTIVE if status is not RouteStatus.TERMINATED]

ACTIVE = f"status NOT IN ({words(_INACTIVE)})"
RUNNING = f"status IN ({words(_RUNNING)})"
WELL = f"status IN ({words([RouteStatus.PROVISIONING, RouteStatus.HEALTHY])})"
JUDGED = f"status IN ({words([RouteStatus.HEALTHY, RouteStatus.UNHEALTHY])})"
PRESENT = f"status NOT IN ({words(_GONE)})"
GONE = f"status IN ({words(_GONE)})"
DRAINED = f"status IN ({words(_DRAINED)})"
TO_STOP = f"status IN ({words(_TO_STOP)})"
