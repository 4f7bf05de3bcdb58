"""What must hold for every handler and every strategy, whoever adds one."""

import pytest

from domain.cycle.transitions import STAY, RevisionMove, Transition
from domain.handlers.base import DeploymentHandler
from domain.handlers.dispatch import HANDLERS, woken_by
from domain.model.lifecycle_events import (
    ON_EACH_HOST,
    ROUTE_CADENCES,
    WHILE_THERE_IS_WORK,
    DeploymentLifecycleType,
    DoDeploymentLifecycleEvent,
    DoDeploymentLifecycleIfNeededEvent,
    RouteLifecycleType,
)
from domain.model.states import DeploymentLifecycleStatus, DeploymentSubStep, Lifecycle, Verdict
from domain.strategies.builtin import STRATEGIES
from domain.text.errors import InvalidInputError

ALL = [
    *(DeploymentLifecycleStatus(lifecycle) for lifecycle in Lifecycle if lifecycle is not Lifecycle.DEPLOYING),
    *(DeploymentLifecycleStatus(Lifecycle.DEPLOYING, step) for step in DeploymentSubStep),
]
LIVING = [status for status in ALL if status.lifecycle is not Lifecycle.DESTROYED]
EACH = pytest.mark.parametrize("handler", HANDLERS.values(), ids=lambda handler: handler.name)


@pytest.mark.parametrize("status", LIVING, ids=str)
def test_every_status_but_destroyed_is_woken_by_a_handler_with_a_short_cadence(
    status: DeploymentLifecycleStatus,
) -> None:
    event = woken_by(status)
    assert event is not None
    assert status in HANDLERS[event].targets
    assert HANDLERS[event].cadence.short is not None


@pytest.mark.parametrize("status", LIVING, ids=str)
def test_exactly_one_handler_is_woken_for_a_status(status: DeploymentLifecycleStatus) -> None:
    assert (
        len(
            [
                handler
                for handler in HANDLERS.values()
                if status in handler.targets and handler.cadence.short is not None
            ]
        )
        == 1
    )


def test_nobody_looks_at_destroyed_deployments() -> None:
    assert woken_by(DeploymentLifecycleStatus(Lifecycle.DESTROYED)) is None


@EACH
@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_has_a_transition_to_a_status_that_somebody_handles(
    handler: DeploymentHandler, verdict: Verdict
) -> None:
    transition = handler.transitions.of(verdict)
    assert isinstance(transition, Transition)
    assert transition.to is None or transition.to in ALL
    if transition.to is not None and transition.to.lifecycle is not Lifecycle.DESTROYED:
        assert woken_by(transition.to) is not None


@EACH
def test_success_always_leaves_the_status(handler: DeploymentHandler) -> None:
    success = handler.transitions.success.to
    assert success is not None
    assert success not in handler.targets


@EACH
def test_a_wait_leaves_everything_as_it_is(handler: DeploymentHandler) -> None:
    """The applier writes no more of a wait than its mark and its reason."""
    assert handler.transitions.skipped == STAY


@EACH
def test_the_revision_pointers_move_exactly_when_a_rollout_ends(handler: DeploymentHandler) -> None:
    deploying = {status.lifecycle for status in handler.targets} == {Lifecycle.DEPLOYING}
    for verdict in Verdict:
        transition = handler.transitions.of(verdict)
        leaves = deploying and transition.to is not None and transition.to.lifecycle is not Lifecycle.DEPLOYING
        assert (transition.revision is not RevisionMove.KEEP) == leaves


@EACH
def test_a_handlers_key_is_its_event_and_can_be_parsed_from_a_message(handler: DeploymentHandler) -> None:
    assert HANDLERS[handler.event] is handler
    event = handler.event
    sub_step = str(event.sub_step) if event.sub_step else None
    assert DoDeploymentLifecycleEvent.parse(str(event.lifecycle_type), sub_step) == event


def test_names_and_keys_are_unique() -> None:
    assert len({handler.name for handler in HANDLERS.values()}) == len(HANDLERS)
    assert len({str(event) for event in HANDLERS}) == len(HANDLERS)


def test_every_lifecycle_type_has_a_handler() -> None:
    assert {event.lifecycle_type for event in HANDLERS} == set(DeploymentLifecycleType)


def test_both_deploying_handlers_share_one_lock_and_the_others_have_their_own() -> None:
    locks = {handler.name: handler.lock_id for handler in HANDLERS.values()}
    assert locks["deploying_provisioning"] == locks["deploying_rolling_back"] == "deploying"
    assert locks["reconcile"] is None
    others = [lock for name, lock in locks.items() if lock is not None and not name.startswith("deploying")]
    assert len(set(others)) == len(others)
    assert "deploying" not in others


def test_how_often_each_handler_looks_at_what_is_marked_and_at_everything() -> None:
    assert {handler.name: (handler.cadence.short, handler.cadence.long) for handler in HANDLERS.values()} == {
        "check_pending": (2, 30),
        "check_replica": (5, 30),
        "scaling": (5, 30),
        "reconcile": (None, 30),
        "deploying_preparing": (5, 30),
        "deploying_provisioning": (5, 30),
        "deploying_rolling_back": (5, 30),
        "destroying": (5, 60),
    }


def test_every_look_at_routes_is_asked_for_by_the_clock_or_while_there_is_work() -> None:
    assert set(ROUTE_CADENCES).isdisjoint(WHILE_THERE_IS_WORK)
    assert {*ROUTE_CADENCES, *WHILE_THERE_IS_WORK} == set(RouteLifecycleType)
    assert ROUTE_CADENCES == {"sweep": 30, "metrics": 5, "hosts": 2}


def test_what_touches_a_replica_is_done_on_its_own_host() -> None:
    assert {"start", "probe", "stop", "sweep"} == ON_EACH_HOST


def test_if_needed_is_another_event_with_the_same_key() -> None:
    event = DoDeploymentLifecycleEvent.parse("deploying", "provisioning")
    if_needed = DoDeploymentLifecycleIfNeededEvent.parse("deploying", "provisioning")
    assert isinstance(if_needed, DoDeploymentLifecycleIfNeededEvent)
    assert str(event) == str(if_needed) == "deploying/provisioning"


@pytest.mark.parametrize(
    ("lifecycle_type", "sub_step", "words"),
    [
        ("deployng", None, "lifecycle_type must be one of check_pending, check_replica, scaling, reconcile"),
        ("deploying", "completed", "sub_step must be one of preparing, provisioning, rolling_back, not 'completed'"),
        ("deploying", "", "sub_step must be one of"),
        ("", None, "lifecycle_type must be one of"),
    ],
)
def test_an_event_that_does_not_exist_is_refused_with_the_words_it_may_be(
    lifecycle_type: str, sub_step: str | None, words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words) as refused:
        DoDeploymentLifecycleEvent.parse(lifecycle_type, sub_step)
    assert refused.value.detail["field"] in ("lifecycle_type", "sub_step")


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_every_strategy_has_a_spec_that_needs_nothing(strategy: object) -> None:
    spec = strategy.spec_model()  # type: ignore[attr-defined]
    assert spec.model_config["frozen"]
    assert spec.model_config["extra"] == "forbid"
