"""A size that a person asks for in the middle of a rollout never makes a failure count that was allowed."""

from collections.abc import Callable

import pytest

from domain.cycle.rollout import rollout_of
from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment
from domain.model.states import Verdict
from domain.steering.activation import activate
from domain.steering.verbs import scale
from tests.support.people.people import asking, request
from tests.support.pictures.pictures import NOW, V2, deploying


def by_scale(deployment: Deployment, size: int) -> Deployment:
    return scale(deployment, size).deployment


def with_the_revision(deployment: Deployment, size: int) -> Deployment:
    return activate(deployment, request(deployment, V2, None, desired=size), asking(deployment, NOW)).deployment


def allowed(deployment: Deployment) -> int:
    limits = rollout_of(deployment, "ask").policy.limits
    return limits.failures_allowed(deployment.desired_replicas)


def gives_up(deployment: Deployment) -> bool:
    return cycle(deployment, NOW).verdict is Verdict.GIVE_UP


@pytest.mark.parametrize("resize", [by_scale, with_the_revision])
@pytest.mark.parametrize(("failed", "back"), [(4, False), (19, False), (20, True)])
def test_a_smaller_size_does_not_send_back_what_the_larger_one_allowed(
    resize: Callable[[Deployment, int], Deployment], failed: int, *, back: bool
) -> None:
    whole = deploying("■■■■■■■|" + "■" * 33, 40, rollout={"failed_routes": failed})
    smaller = resize(whole, 3)
    assert smaller.desired_replicas == 3
    assert gives_up(whole) is gives_up(smaller) is back


@pytest.mark.parametrize(
    ("sizes", "ends_with"), [((3,), 20), ((3, 60, 2), 20), ((60,), 30), ((60, 3), 30), ((41,), 21)]
)
def test_what_is_allowed_never_falls_by_a_size(sizes: tuple[int, ...], ends_with: int) -> None:
    deployment = deploying("■■|", 40)
    before = allowed(deployment)
    for size in sizes:
        deployment = by_scale(deployment, size)
        assert allowed(deployment) >= before
    assert allowed(deployment) == ends_with
