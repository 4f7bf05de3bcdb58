"""Counts the news of replicas for their deployment: failures that hold back, failures that count, and progress.

failed                  one more failed start in a row of its revision, the first one after a minute in which all was
                        well; one more failed route of a rollout to it
lost with its host      no revision is to blame
has come up             starts of its revision are held back no more, unless another failed in the same breath;
                        progress of a rollout to it
was sick and is back    nothing: it had come up before
failed or sick          the rollout to its revision remembers why, unless no revision is to blame
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from domain.model.deployment import Deployment, Rollout, StartFailures
from domain.model.states import RouteStatus
from domain.strategies.converge import is_proven
from domain.text.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class StatusChanges:
    """The replicas of one revision that failed, and that came up, counted: from provisioning to healthy.

    `last_failure`: why one of them failed or sickened.
    """

    revision_id: UUID
    failed: int = 0
    came_up: int = 0
    last_failure: str | None = None


class StatusChange(NamedTuple):
    """The fate of one route. `is_lost`: with its host."""

    revision_id: UUID
    was: RouteStatus
    status: RouteStatus
    why: str = ""
    is_lost: bool = False


def status_told(word: str, runtime: str, address: str | None) -> RouteStatus:
    """The status of an external replica that the system which runs it reports. Raises InvalidInputError.

    a runtime of Rollway's own                    -> error: nobody reports these
    healthy, unhealthy, and no address is known   -> error: address is needed
    healthy, unhealthy                            -> the status of that name
    failed, stopped                               -> failed; one that is on its way out has only stopped
    """
    if runtime != "external":
        raise InvalidInputError(
            f"route_id: a replica of the runtime {runtime!r} is looked after by Rollway itself; "
            "report replicas of the runtime 'external' only",
            field="route_id",
        )
    if word not in (RouteStatus.HEALTHY, RouteStatus.UNHEALTHY):
        return RouteStatus.FAILED
    if not address:
        raise InvalidInputError(
            "address is needed with the first report of a running replica: host:port", field="address"
        )
    return RouteStatus(word)


def news_of(became: Iterable[StatusChange]) -> tuple[StatusChanges, ...]:
    """Counts of the changes by revision. What was lost with a host is no failure."""
    counts: dict[UUID, Counter[str]] = defaultdict(Counter)
    failures: dict[UUID, str] = {}
    for revision_id, was, status, why, is_lost in sorted(became, key=lambda route: route.status is RouteStatus.FAILED):
        came_up = was is RouteStatus.PROVISIONING and status is RouteStatus.HEALTHY
        counts[revision_id].update(failed=int(status is RouteStatus.FAILED and not is_lost), came_up=int(came_up))
        if why and not is_lost and status in (RouteStatus.FAILED, RouteStatus.UNHEALTHY):
            failures[revision_id] = why
    return tuple(
        StatusChanges(revision_id, count["failed"], count["came_up"], failures.get(revision_id))
        for revision_id, count in counts.items()
    )


def failures_after(before: StartFailures | None, news: Sequence[StatusChanges], now: datetime) -> StartFailures | None:
    """A deployment remembers the failing starts of one revision: of the one that fails most just now, or the newer."""
    worst = max(news, key=lambda item: (item.failed, item.revision_id))
    if worst.failed:
        if before is None or before.revision_id != worst.revision_id or is_proven(before, now):
            return StartFailures(worst.revision_id, worst.failed, now)
        short_lives = before.short_lives + (before.came_up_at is not None)
        return StartFailures(worst.revision_id, before.in_a_row + worst.failed, now, short_lives=short_lives)
    came_up = {item.revision_id for item in news if item.came_up}
    if before is None or before.came_up_at is not None or before.revision_id not in came_up:
        return before
    return replace(before, came_up_at=now)


def counters_after(
    failed_routes: int, last_progress_at: datetime, target: StatusChanges, now: datetime
) -> tuple[int, datetime]:
    """Failed routes and last progress of a rollout, by the news of its new revision."""
    return failed_routes + target.failed, now if target.came_up else last_progress_at


def reported(
    deployment: Deployment, statuses: Mapping[UUID, RouteStatus], now: datetime, *, blame: bool = True, why: str = ""
) -> Deployment:
    """The next snapshot, once these routes are found in these statuses. What is on its way out stays so.

    `why`: for all of them.
    """
    changed_routes = [
        route
        for route in deployment.routes
        if route.is_active and statuses.get(route.id, route.status) is not route.status
    ]
    if not changed_routes:
        return deployment
    news = news_of(
        StatusChange(route.revision_id, route.status, statuses[route.id], why, not blame) for route in changed_routes
    )
    became = {
        route.id: replace(route, status=statuses[route.id], status_changed_at=now, kept_until=None)
        for route in changed_routes
    }
    routes = (became.get(route.id, route) for route in deployment.routes)
    rollout = deployment.rollout
    return replace(
        deployment,
        version=deployment.version + 1,
        rollout=_rollout_after(rollout, news, now) if rollout else None,
        start_failures=failures_after(deployment.start_failures, news, now),
        routes=tuple(route for route in routes if route.status is not RouteStatus.FAILED),
    )


def _rollout_after(rollout: Rollout, news: Sequence[StatusChanges], now: datetime) -> Rollout:
    target = next(
        (item for item in news if item.revision_id == rollout.to_revision_id), StatusChanges(rollout.to_revision_id)
    )
    failed_routes, last_progress_at = counters_after(rollout.failed_routes, rollout.last_progress_at, target, now)
    return replace(
        rollout,
        failed_routes=failed_routes,
        last_progress_at=last_progress_at,
        last_failure=target.last_failure or rollout.last_failure,
    )
