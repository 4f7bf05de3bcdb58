"""What people may rely on: nobody takes over who was not promoted, a word is followed, and harm leads back."""

from collections.abc import Iterator
from datetime import datetime

from domain.cycle.transitions import ClassifiedDecision, RevisionMove
from domain.model.decision import WaitsFor
from domain.model.deployment import Deployment, Rollout
from domain.model.states import Verdict
from tests.support.pictures.pictures import PROVISIONING, ROLLING_BACK
from tools.prove.clocks import HARM, told
from tools.prove.laws.requests import idled
from tools.prove.state import State

TAKES_ALL_AWAY = ("abort now", "destroy")


def broken_by_wish(state: State, decision: ClassifiedDecision, after: Deployment) -> Iterator[str]:
    """Judged by the deployment as the decision saw it."""
    before = decision.deployment
    rollout = before.rollout
    if rollout is None:
        return
    if decision.revision is RevisionMove.SWAP and not _is_promoted(rollout):
        yield "nobody who was not promoted becomes current: by a person, by seconds or by a judge"
    yield from _unheard(before, rollout, decision, state.now)
    if harms(before, rollout, state.now):
        yield from _harmed(before, decision, after)
    elif before.version == state.deployment.version:
        yield from idled(state.deployment, after)


def broken_by_word(before: Deployment, name: str, after: Deployment) -> Iterator[str]:
    """What a person has asked for does no harm that was not asked for."""
    canary = after.rollout.canary if after.rollout else None
    if name == "abort now" and canary is not None and canary.weight:
        yield "who says now is followed now"
    if name not in TAKES_ALL_AWAY and not name.startswith("scale"):
        yield from idled(before, after)


def harms(deployment: Deployment, rollout: Rollout, now: datetime) -> bool:
    """Proxies have told that the canary fails, to a judge who decides, or that the new revision answers nobody."""
    judge = getattr(rollout.policy.spec, "judge", None)
    weighs = rollout.canary is not None and rollout.canary.weight
    fails = weighs and judge is not None and not judge.dry_run and told(rollout, now) == HARM
    return not deployment.paused_at and bool(fails or rollout.unanswered)


def _is_promoted(rollout: Rollout) -> bool:
    """A canary is past all its weights, each of which has been judged as it ended, and green is as its policy says."""
    if rollout.policy.strategy == "canary":
        return rollout.canary is None or rollout.canary.weight is None
    return getattr(rollout.policy.spec, "auto_promote", True) or rollout.promote_requested


def _unheard(before: Deployment, rollout: Rollout, decision: ClassifiedDecision, now: datetime) -> Iterator[str]:
    waits = decision.waits.kind if decision.waits else None
    if before.paused_at or before.hold:
        return
    asked = rollout.promote_requested or before.status == ROLLING_BACK
    if asked and waits in (WaitsFor.PERSON, WaitsFor.JUDGE):
        yield "who has spoken is waited for no more, nor is a judge instead"
    want_of_evidence = decision.raw_verdict is Verdict.GIVE_UP and rollout.policy.strategy == "canary"
    if rollout.promote_requested and want_of_evidence and not rollout.unanswered and not harms(before, rollout, now):
        yield "what a person has promoted is not taken back for want of evidence"


def _harmed(before: Deployment, decision: ClassifiedDecision, after: Deployment) -> Iterator[str]:
    """In a freeze too, on the way back, and where a limit has passed as well."""
    if before.status == PROVISIONING and decision.to != ROLLING_BACK:
        yield "harm that proxies have told of leads back at the next look"
    canary = after.rollout.canary if after.rollout else None
    if decision.to == ROLLING_BACK and canary is not None and canary.weight:
        yield "harm that proxies have told of takes all requests away at the next look"
