"""What asking for a revision comes to, in every state."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from domain.cycle.rollout import Begin, begin_rollout
from domain.model.deployment import Deployment
from domain.model.policy import DeploymentPolicy
from domain.model.states import DeploymentLifecycleStatus
from domain.revisions.host_labels import NoHostFitsError
from domain.steering.activation import (
    Activation,
    ActivationRequest,
    DeploymentAlreadyInProgressError,
    activate,
    decide_activation,
)
from domain.steering.gates import Frozen, FrozenError
from domain.text.errors import WrongStateError
from tests.support.people.people import asking, request
from tests.support.pictures.pictures import (
    DESTROYED,
    DESTROYING,
    NOW,
    PENDING,
    READY,
    SCALING,
    V1,
    V2,
    V3,
    deploying,
    resting,
    rolling_back,
    rolling_update,
)

NAMES = {V1: "v1", V2: "v2", V3: "v3"}


def asked(
    deployment: Deployment, revision: object, policy: DeploymentPolicy | None = None, *, supersede: bool = False
) -> Activation:
    deploying_id = deployment.deploying_revision_id
    (revision_id,) = (known for known in NAMES if known == revision)
    request = ActivationRequest(
        revision_id, NAMES[revision_id], NAMES[deploying_id] if deploying_id else None, policy, supersede
    )
    return decide_activation(deployment, request)


@pytest.mark.parametrize("policy", [None, rolling_update()])
def test_the_first_revision_of_a_pending_deployment(policy: DeploymentPolicy | None) -> None:
    pending = resting("", status=PENDING, current_revision_id=None)
    assert asked(pending, V1, policy) is Activation.FIRST
    assert asked(replace(pending, current_revision_id=V1), V2, policy) is Activation.FIRST


def test_a_rollout_begins_from_a_revision() -> None:
    begin = Begin(UUID(int=7), V2, rolling_update())
    with pytest.raises(ValueError, match="web has no revision that a rollout could begin from"):
        begin_rollout(resting("", status=PENDING, current_revision_id=None), begin, NOW)


@pytest.mark.parametrize("status", [READY, SCALING], ids=str)
def test_at_rest(status: DeploymentLifecycleStatus) -> None:
    at_rest = resting("■■■", status=status)
    assert asked(at_rest, V3, rolling_update()) is Activation.BEGUN
    assert asked(at_rest, V3) is Activation.MOVED
    assert asked(at_rest, V2, rolling_update()) is Activation.ALREADY_ACTIVE
    assert asked(resting("~|■■■", status=status), V2) is Activation.ALREADY_ACTIVE
    assert asked(resting("■|■■■", status=status), V2, rolling_update()) is Activation.CONVERGING
    assert asked(resting("□|■■■", status=status), V2) is Activation.CONVERGING


def test_asking_again_for_what_is_being_deployed_resumes() -> None:
    assert asked(deploying("■■|■"), V2, rolling_update()) is Activation.RESUMED
    assert asked(deploying("■■|■"), V2, supersede=True) is Activation.RESUMED


@pytest.mark.parametrize(
    ("deployment", "revision", "doing"),
    [
        (deploying("■■|■"), V1, "deploying v2"),
        (deploying("■■|■"), V3, "deploying v2"),
        (rolling_back("■■|■"), V1, "rolling back from v2"),
        (rolling_back("■■|■"), V2, "rolling back from v2"),
        (rolling_back("■■|■"), V3, "rolling back from v2"),
    ],
)
def test_another_revision_in_the_middle_is_refused_naming_both_ways_out(
    deployment: Deployment, revision: object, doing: str
) -> None:
    with pytest.raises(
        DeploymentAlreadyInProgressError, match=f"web is {doing}; wait until that .* supersede .--supersede"
    ):
        asked(deployment, revision, rolling_update())
    assert asked(deployment, revision, rolling_update(), supersede=True) is Activation.SUPERSEDED


@pytest.mark.parametrize(
    ("deployment", "revision", "is_refused"),
    [
        (resting("", status=PENDING, current_revision_id=None), V1, True),
        (resting("■■■", status=READY), V3, True),
        (deploying("■■|■"), V3, True),
        (deploying("■■|■"), V2, False),
        (deploying("■■|■"), V1, False),  # back to what is current
        (resting("■■■", status=READY), V2, False),
        (resting("■|■■■", status=READY), V2, False),
    ],
)
def test_a_freeze_and_a_want_of_hosts_refuse_what_begins_and_never_the_way_back(
    deployment: Deployment, revision: UUID, *, is_refused: bool
) -> None:
    freeze = Frozen("fair", "", NOW + timedelta(hours=1))
    asking_for = replace(request(deployment, revision, rolling_update(), supersede=True), frozen=freeze)
    if is_refused:
        with pytest.raises(FrozenError):
            activate(deployment, asking_for, asking(deployment, NOW))
    if deployment.status != PENDING:
        assert activate(deployment, replace(asking_for, is_undo=True), asking(deployment, NOW))
    through = activate(deployment, replace(asking_for, through_freeze=True), asking(deployment, NOW))
    assert through.sentence.endswith(", through freeze fair") is is_refused
    unfit = replace(asking_for, frozen=None, labels={"zone": "b"}, hosts={"h1": {"zone": "a"}})
    if is_refused:
        with pytest.raises(NoHostFitsError):
            activate(deployment, unfit, asking(deployment, NOW))
    else:
        assert activate(deployment, unfit, asking(deployment, NOW))


@pytest.mark.parametrize(
    ("deployment", "revision", "policy", "sentence", "activation"),
    [
        (resting("", status=PENDING, current_revision_id=None), V1, None, "first activation of v1", "first"),
        (resting("■■■", status=READY), V3, None, "moved to v3", "moved"),
        (resting("■|■■■", status=READY), V2, None, "moved to v2", "converging"),
        (resting("■■■", status=READY), V3, rolling_update(), "started the rollout to v3", "begun"),
        (deploying("■■|■"), V2, None, "resumed the rollout to v2", "resumed"),
        (deploying("■■|■"), V3, None, "started the rollout to v3, in place of the one before", "superseded"),
        (resting("■■■", status=READY), V2, None, "", "already_active"),
    ],
)
def test_a_history_says_what_came_of_asking_for_a_revision(
    deployment: Deployment, revision: UUID, policy: DeploymentPolicy | None, sentence: str, activation: str
) -> None:
    wanted = replace(request(deployment, revision, policy, supersede=True), revision_name=NAMES[revision])
    effect = activate(deployment, wanted, asking(deployment, NOW))
    assert (effect.sentence, effect.details) == (sentence, {"revision": NAMES[revision], "activation": activation})
    assert effect.already is (activation == "already_active")
    if activation in ("begun", "superseded"):
        back = activate(deployment, replace(wanted, is_undo=True), asking(deployment, NOW))
        assert back.sentence == sentence.replace("to v3", "back to v3")


@pytest.mark.parametrize("status", [DESTROYING, DESTROYED], ids=str)
@pytest.mark.parametrize("supersede", [False, True])
def test_trap_no_activation_is_accepted_while_destroying(status: DeploymentLifecycleStatus, supersede: bool) -> None:  # noqa: FBT001
    with pytest.raises(WrongStateError, match=f"web is {status}") as refused:
        asked(resting("■■■", status=status), V2, rolling_update(), supersede=supersede)
    assert refused.value.as_json()["detail"] == {"deployment": "web", "state": str(status)}
