"""What a judge has seen in one interval."""

from dataclasses import dataclass
from datetime import datetime

from domain.model.answers import NO_COPIES, Answers, Copies


@dataclass(frozen=True, slots=True)
class Evidence:
    """What came in until `at`, of the `reporting` ones among the `live` proxies.

    `copies`: of requests, that the canary answered before its first weight. `old_failed`: of all that the old revision
    answered, whichever replicas of it are the control.
    """

    at: datetime
    canary: Answers
    control: Answers
    reporting: int
    live: int
    copies: Copies = NO_COPIES
    old_failed: int = 0
