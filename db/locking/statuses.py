"""The lists of statuses in SQL, made from the enums: a status that is added there finds its place in every query.

A route's way:  provisioning -> healthy | unhealthy | degraded -> terminating -> terminated, or -> failed

    ACTIVE     provisioning, healthy, unhealthy, degraded     counts against a budget
    RUNNING                  healthy, unhealthy, degraded     has an address, and proxies may be told of it
    JUDGED                   healthy, unhealthy               a probe said so
    WELL       provisioning, healthy                          active, and nothing that must be replaced
    PRESENT    the active ones, and terminating               is in a snapshot
    GONE       terminated, failed                             is in none
    TO_STOP    terminating, failed                            its replica must end, if it has not

Each is a condition on a column `status`; write `r.{ACTIVE}` where the routes are called `r`.
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from domain.model.canary import CanaryState
from domain.model.deployment import StartFailures
from domain.model.states import DeploymentLifecycleStatus, DeploymentSubStep, Lifecycle, RouteStatus
from domain.text.errors import UnreadableError


def words(members: Iterable[StrEnum]) -> str:
    """The values of statuses as a list of SQL literals: 'a', 'b'."""
    return ", ".join(f"'{member.value}'" for member in members)


_INACTIVE = [status for status in RouteStatus if not status.is_active]
_RUNNING = [status for status in RouteStatus if status.is_active and status is not RouteStatus.PROVISIONING]
_GONE = [status for status in _INACTIVE if status is not RouteStatus.TERMINATING]
_TO_STOP = [status for status in _INACTIVE if status is not RouteStatus.TERMINATED]

ACTIVE = f"status NOT IN ({words(_INACTIVE)})"
RUNNING = f"status IN ({words(_RUNNING)})"
WELL = f"status IN ({words([RouteStatus.PROVISIONING, RouteStatus.HEALTHY])})"
JUDGED = f"status IN ({words([RouteStatus.HEALTHY, RouteStatus.UNHEALTHY])})"
PRESENT = f"status NOT IN ({words(_GONE)})"
GONE = f"status IN ({words(_GONE)})"
TO_STOP = f"status IN ({words(_TO_STOP)})"

IS_UNPLACED = "r.host IS NULL AND r.stopped_at IS NULL"
"""Which routes `r` have no host, and need one."""

_STATUSES = {
    (lifecycle.value, sub_step.value if sub_step else None): DeploymentLifecycleStatus(lifecycle, sub_step)
    for lifecycle in Lifecycle
    for sub_step in (None, *DeploymentSubStep)
}


def lifecycle_status(lifecycle: str, sub_step: str | None) -> DeploymentLifecycleStatus:
    """A status as its two columns store it. Raises UnreadableError for one that this release does not know."""
    try:
        return _STATUSES[lifecycle, sub_step]
    except KeyError:
        word = f"{lifecycle}/{sub_step}" if sub_step else lifecycle
        raise UnreadableError.of("state of a deployment", word) from None


def known_status(lifecycle: str, sub_step: str | None) -> DeploymentLifecycleStatus | None:
    """The status; None for one that this release does not know, so that no handler of it looks at the deployment."""
    return _STATUSES.get((lifecycle, sub_step))


def leased_for(longest: str) -> str:
    """Whether a worker has a row to itself, without a transaction: a condition on its column `leased_until`.

    When the worker dies, the lease ends by itself. No lease is longer than `longest`, an interval in SQL: one that ends
    later is from before the database's clock was set back, and holds nobody up.
    """
    return f"leased_until BETWEEN clock_timestamp() AND clock_timestamp() + {longest} IS TRUE"


_HEARD = "(SELECT max(least(seen_at, clock_timestamp())) FROM publishers)"
IS_LIVE = f"p.last_seen_at > {_HEARD} - make_interval(secs => p.silence_seconds)"
"""Which proxies live: a condition on a proxy `p`. Silence counts only while there is a server that it could talk to.

A server's time that lies ahead is from before the database's clock was set back.
"""

COUNTS_UNANSWERED = "NOT o.is_undo AND o.limits ->> 'unanswered' IS NOT NULL"
"""Which rollouts go back by themselves while their revision answers nobody: a condition on a rollout `o`."""
IS_COUNTED_ON = """
    o.outcome = 'completed' AND d.lifecycle = 'ready' AND d.current_revision_id = o.to_revision_id
    AND statement_timestamp() - o.ended_at < (o.limits ->> 'unanswered_within_seconds')::float8 * interval '1 s'
    AND o.ended_at > statement_timestamp() - interval '1 h'
"""
"""Which of them are counted on after their end, until something else begins: on `o` and its deployment `d`."""

REFERENCES = "SELECT jsonb_path_query(v.spec, '$.env.*.secret') #>> '{}'"
"""The secrets that the revision `v` refers to."""
IS_TARGET = """
    coalesce(r.revision_id = CASE WHEN d.sub_step IN ('preparing', 'provisioning') THEN d.deploying_revision_id
                                  ELSE d.current_revision_id END, false)
"""
"""Whether the route `r` is of the revision that should run of its deployment `d`."""

HAS_LENT = "(r.slept_at IS NOT NULL AND r.devices IS NOT NULL)"
"""Whether the replica of the route `r` sleeps, and has lent its devices: then only a decision wakes it."""

IS_NEEDED = f"(({IS_TARGET} OR r.parked_until IS NULL) AND NOT {HAS_LENT})"
"""Whether the replica of the route `r` of its deployment `d` should be awake."""

IS_LACKED = f"""
    s.fault IS NOT NULL AND s.reference IN ({REFERENCES})
    AND s.asked_by = (SELECT name FROM deployments WHERE id = v.deployment_id)
"""
"""Whether the row `s` of host_secrets says that its host cannot start replicas of the revision `v`."""

HAS_LABELS = "(h.labels || jsonb_build_object('host', h.name)) @> coalesce(v.spec -> 'hosts', '{}')"
"""Whether the host `h` has the labels that the revision `v` requires."""

ANOTHER_TAKES_IT = f"""
    EXISTS (SELECT FROM hosts h JOIN revisions v ON v.id = r.revision_id
             WHERE h.down_since IS NULL AND h.deaf_since IS NULL AND h.drained_at IS NULL AND h.name <> r.host
               AND {HAS_LABELS} AND NOT EXISTS (SELECT FROM host_secrets s WHERE s.host = h.name AND {IS_LACKED}))
"""
"""Whether a host other than that of the route `r` takes replicas of its revision."""

IS_PLACEABLE = f"""
    {IS_UNPLACED}
    AND EXISTS (SELECT FROM revisions v
                 WHERE v.id = r.revision_id
                   AND (v.spec ->> 'runtime' = 'external'
                        OR EXISTS (SELECT FROM hosts h WHERE h.down_since IS NULL AND {HAS_LABELS})))
"""
"""Which routes `r` have no host, and would get one now: what waits for labels holds up nobody else."""

# the drained hosts are asked for once in a statement, and nearly always there is none
IS_MISPLACED = f"""
    coalesce(r.host = ANY(ARRAY(SELECT name FROM hosts WHERE drained_at IS NOT NULL)) AND {ANOTHER_TAKES_IT}, false)
"""
"""Whether the host of the route `r` is drained, and another host takes replicas of its revision."""


def start_failures(
    revision_id: UUID | None, in_a_row: int, last_at: datetime | None, came_up_at: datetime | None, short_lives: int
) -> StartFailures | None:
    """None when none has failed. The version before forgets failures by their number, and writes no `came_up_at`."""
    if not in_a_row or revision_id is None or last_at is None:
        return None
    if came_up_at is not None and came_up_at < last_at:
        came_up_at = None
    return StartFailures(revision_id, in_a_row, last_at, came_up_at, short_lives)


def canary_state(stage: int, weight: int | None, weight_known_at: datetime | None) -> CanaryState | None:
    """The canary of a rollout that is stored with these; None where it never had a weight."""
    return CanaryState(stage, weight, weight_known_at) if stage or weight is not None else None
