"""Commands that begin a rollout, steer it or go back."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from domain.commands.base import Replicas
from domain.commands.results import Activated, Retried, SteeredAnswer, Turned
from domain.commands.steering_command import Case, StartingCommand, SteeringCommand
from domain.installation.tokens import Role
from domain.revisions.revision import WrittenSpec
from domain.steering import verbs
from domain.steering.activation import activate
from domain.steering.command_effect import Effect
from domain.text.storable import Name

_Revision = Annotated[Name, Field(json_schema_extra={"x-names": "revision"})]


class ActivateRevision(StartingCommand):
    """Make a revision the current one: by a rollout, or, without a policy, by replacing the replicas."""

    task = "rollway.activate_revision"
    answer = Activated
    is_planned = True
    example = {"revision": "v2", "reason": "ticket 7"}

    revision: _Revision
    """The name of the revision."""
    supersede: bool = False
    """Leave a rollout to another revision that is under way."""
    desired_replicas: Replicas | None = None
    """A new size that comes with the new revision, and goes again should it be rolled back."""

    def steer(self, case: Case) -> Effect:
        return activate(case.deployment, case.asked_for(), case.asking)


class Restart(StartingCommand):
    """Roll the same revision again, with the policy and its budgets: a secret or a file that it reads has changed.

    The revision is called v3.r2 after v3. An undo passes it by, as nothing but the replicas is new.
    """

    task = "rollway.restart"
    answer = Activated
    is_planned = True
    example = {"reason": "a new certificate"}

    def steer(self, case: Case) -> Effect:
        return activate(case.deployment, case.same_again(), case.asking)


class RollingUpdate(StartingCommand):
    """Roll out a changed revision: another image or command of the current one, or another whole content."""

    task = "rollway.rolling_update"
    answer = Activated
    role = Role.OPERATOR
    is_planned = True
    example = {"command": ["python", "app.py", "2"]}

    revision: _Revision | None = None
    """The name of the revision. Left out: made from its content, so that the same change asked again changes nothing.
    With neither image nor command: a revision that exists, or the one of the rollout under way."""
    image: str | None = Field(default=None, min_length=1)
    """The image of its containers from now on."""
    command: tuple[str, ...] = ()
    """The command of its replicas from now on."""
    spec: WrittenSpec | None = None
    """The whole content of the new revision, in place of an image or a command."""
    values_of: _Revision | None = None
    """The revision whose values replace *** in the variables of `spec`; left out: the current one."""
    supersede: bool = False
    """Leave a rollout to another revision that is under way."""

    @property
    def changes(self) -> bool:
        return self.image is not None or bool(self.command) or self.spec is not None

    @model_validator(mode="after")
    def _changes_in_one_way(self) -> Self:
        if self.spec is not None and (self.image is not None or self.command):
            raise ValueError("spec is the whole content: leave image and command out")
        if self.values_of is not None and self.spec is None:
            raise ValueError("values_of belongs to spec, and there is none")
        return self

    def steer(self, case: Case) -> Effect:
        return activate(case.deployment, case.changed(), case.asking)


class Pause(SteeringCommand):
    """Pause a rollout. Nothing is created or drained, and its deadlines stop."""

    task = "rollway.pause"
    answer = SteeredAnswer
    is_planned = True
    example = {"reason": "looking at the logs"}

    def steer(self, case: Case) -> Effect:
        return verbs.pause(case.deployment, case.asking)


class Resume(SteeringCommand):
    """Continue a paused rollout. Its deadlines move by the time it was paused."""

    task = "rollway.resume"
    answer = SteeredAnswer
    is_planned = True

    def steer(self, case: Case) -> Effect:
        return verbs.resume(case.deployment, case.asking)


class Promote(SteeringCommand):
    """Move the traffic to a green set, or to the next weight of a canary, as soon as it is healthy.

    In full a canary passes all of its weights by: the rest follows at once.
    """

    task = "rollway.promote"
    answer = SteeredAnswer
    is_planned = True

    full: bool = False
    """Past all weights of a canary: the rest follows at once; needs a reason."""

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.full and not self.reason:
            raise ValueError("full needs a reason, for the history")
        return self

    def steer(self, case: Case) -> Effect:
        return verbs.promote(case.deployment, full=self.full)


class Abort(SteeringCommand):
    """Abort a rollout: the old revision comes back, within the same budget.

    A canary's requests move to old replicas as fast as these can answer them, or all at once with `now`.
    """

    task = "rollway.abort"
    answer = SteeredAnswer
    is_planned = True
    example = {"reason": "it is slow"}

    now: bool = False
    """Take all requests from a canary at once, though fewer old replicas than usual answer them until more are up."""

    def steer(self, case: Case) -> Effect:
        return verbs.abort(case.deployment, case.asking, now=self.now, start_seconds=case.start_seconds())


class Undo(SteeringCommand):
    """Go back to the revision before, at once.

    A rollout under way turns back; otherwise the revision before gets the traffic as soon as it is healthy, and nothing
    waits for a promotion. Revisions that were rolled back are skipped. When the last rollout is undone already, this is
    refused, and the refusal names the revision before that; within a minute after a rollback it does nothing. A
    revision that is named takes the place of whatever is under way, and is refused where it has only ever failed,
    unless it is asked for `anyway`. When the last change was a file that changed settings alone, its settings are put
    back instead, and nothing is rolled out. A size and settings that a person set since stay, and the answer names
    them.
    """

    task = "rollway.undo"
    answer = Turned
    is_planned = True

    revision: _Revision | None = None
    """Default: the last revision that was not rolled back."""
    anyway: bool = False
    """Whether it may go to a revision of which no replica has ever come up."""
    now: bool = False
    """Take all requests from a canary at once, though fewer old replicas than usual answer them until more are up."""

    def steer(self, case: Case) -> Effect:
        back, start_seconds = case.way_back(), case.start_seconds()
        return verbs.undo(case.deployment, back, case.asking, now=self.now, start_seconds=start_seconds)

    @classmethod
    def of_no_answers(cls, key: str, deployment: str, revision: str, reason: str) -> Self:
        """Rollway's own undo of an ended rollout whose new revision answers nobody, as a person would ask for it."""
        request_id = f"unanswered:{key}"
        return cls(request_id=request_id, actor="rollway", reason=reason, deployment=deployment, revision=revision)


class Retry(StartingCommand):
    """Begin a rolled back rollout again, or try failed starts now. A rollout that is rolling back turns forward again.

    Where nothing was rolled back, or with `now`, nothing begins: failed starts are forgotten and tried again at once,
    as when a database is back that they need.
    """

    task = "rollway.retry"
    answer = Retried
    is_planned = True

    now: bool = False
    """Begin nothing: forget the failed starts, so that the next try of each is now."""

    def steer(self, case: Case) -> Effect:
        return verbs.retry(case.deployment, *case.last_rollout(), case.asking, now=self.now)
