"""The grounds of a wait besides the deployment itself: hosts, secrets, workers, learned times, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from domain.planning.replica_timings import Learned


@dataclass(frozen=True, slots=True)
class Around:
    """The surroundings of a deployment. Whatever is not known is left out, and nothing is said of it.

    `hosts`: by route, where its replica runs; None: it has no host yet. `reasons`: by route, why it stands so.
    `down`: hosts that are down. `lacking`: by host, which secret of the revision it lacks, and why.
    `missing_worker`: a sentence when no worker does anything. `due_at`: when a worker looks next. `said`: what it found
    when it looked last. `failure`: why the last start failed, where the ones of now do. `unproven`: a sentence while
    the new revision has answered nobody. `back`: why its rollout goes back, where it does. `paused`: by whom, and why.
    """

    hosts: Mapping[UUID, str | None] = field(default_factory=dict)
    reasons: Mapping[UUID, str] = field(default_factory=dict)
    down: frozenset[str] = frozenset()
    lacking: Mapping[str, str] = field(default_factory=dict)
    learned: Learned = field(default_factory=Learned)
    missing_worker: str = ""
    due_at: datetime | None = None
    said: str = ""
    failure: str = ""
    unproven: str = ""
    back: str = ""
    paused: str = ""


NOTHING_KNOWN = Around()
