"""What the news of replicas does to their deployment: failures that hold back, failures that count, and progress.

failed                  one more failed start in a row of its revision; one more failed route of a rollout to it
failed with its host    no revision is to blame
has come up             the failed starts of its revision are forgotten, unless another failed in the same breath;
                        progress of a rollout to it
was sick and is back    nothing: it had come up before
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from domain.errors import InvalidInputError
from domain.model import Deployment, Rollout, Route, RouteStatus, StartFailures


@dataclass(frozen=True, slots=True)
class News:
    """How many replicas of one revision failed, and how many came up: from provisioning to healthy."""

    revision_id: UUID
    failed: int = 0
    came_up: int = 0


def status_told(word: str, runtime: str, address: str | None) -> RouteStatus:
    """What the word of another system comes to, for a replica that it runs. Raises InvalidInputError.

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


def news_of(became: Iterable[tuple[UUID, RouteStatus, RouteStatus]], *, blame: bool = True) -> tuple[News, ...]:
    """From revisions with the old and the new status of their routes. Without `blame` no failure counts."""
    counts: dict[UUID, Counter[str]] = defaultdict(Counter)
    for revision_id, was, status in became:
        came_up = was is RouteStatus.PROVISIONING and status is RouteStatus.HEALTHY
        counts[revision_id].update(failed=status is RouteStatus.FAILED and blame, came_up=came_up)
    return tuple(News(revision_id, count["failed"], count["came_up"]) for revision_id, count in counts.items())


def failures_after(before: StartFailures | None, news: Sequence[News], now: datetime) -> StartFailures | None:
    """A deployment remembers the failing starts of one revision: of the one that fails most just now."""
    worst = max(news, key=lambda item: item.failed)
    known = before is not None and before.revision_id == worst.revision_id
    if worst.failed:
        in_a_row = before.in_a_row if before is not None and known else 0
        return StartFailures(worst.revision_id, in_a_row + worst.failed, now)
    recovered = {item.revision_id for item in news if item.came_up}
    return None if before is not None and before.revision_id in recovered else before


def counters_after(failed_routes: int, last_progress_at: datetime, target: News, now: datetime) -> tuple[int, datetime]:
    """Failed routes and last progress of a rollout, by the news of its new revision."""
    return failed_routes + target.failed, now if target.came_up else last_progress_at


def reported(
    deployment: Deployment, statuses: Mapping[UUID, RouteStatus], now: datetime, *, blame: bool = True
) -> Deployment:
    """The next snapshot, once these routes are found in these statuses. What is on its way out stays so."""
    changed = [
        route
        for route in deployment.routes
        if route.is_active and statuses.get(route.id, route.status) is not route.status
    ]
    if not changed:
        return deployment
    news = news_of(((route.revision_id, route.status, statuses[route.id]) for route in changed), blame=blame)
    became = {route.id: _became(route, statuses[route.id], now) for route in changed}
    routes = (became.get(route.id, route) for route in deployment.routes)
    rollout = deployment.rollout
    return replace(
        deployment,
        version=deployment.version + 1,
        rollout=_rollout_after(rollout, news, now) if rollout else None,
        start_failures=failures_after(deployment.start_failures, news, now),
        routes=tuple(route for route in routes if route.status is not RouteStatus.FAILED),
    )


def _became(route: Route, status: RouteStatus, now: datetime) -> Route:
    return replace(route, status=status, status_changed_at=now)


def _rollout_after(rollout: Rollout, news: Sequence[News], now: datetime) -> Rollout:
    target = next((item for item in news if item.revision_id == rollout.to_revision_id), News(rollout.to_revision_id))
    failed_routes, last_progress_at = counters_after(rollout.failed_routes, rollout.last_progress_at, target, now)
    return replace(rollout, failed_routes=failed_routes, last_progress_at=last_progress_at)
