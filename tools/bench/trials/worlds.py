"""The worlds: what each revision does, who asks, by which policy, and how it is to end."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from cli.demo.load.generator import Load, LoadSettings
from cli.demo.load.mix import Kind

Faults = Mapping[str, Any]

CANARY = {"strategy": "canary", "spec": {"steps": ["20%", "50%"], "judge": {}}}
ROLLING = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}}
BLUE_GREEN = {"strategy": "blue_green", "spec": {"auto_promote": True}}
PARKING = {"strategy": "blue_green", "spec": {"auto_promote": True, "scale_down_delay_seconds": 30}}
RECREATE = {"strategy": "recreate", "spec": {}}

HANGS = {"share": 1, "fault": "hang"}
FAILS = {"share": 1, "fault": 500}
_MOST_OPEN = 20_000


@dataclass(frozen=True, slots=True)
class Callers:
    """`rate` requests a second, each on a connection of its own; a caller waits for `patience` seconds and leaves."""

    kind: Kind = Kind.GET_CLOSE
    rate: float = 30
    patience: float = 15

    @contextmanager
    def calling(self, port: int, host: str) -> Iterator[Load]:
        """They ask through a proxy on this machine until the block ends."""
        load = Load(
            LoadSettings(
                address=f"127.0.0.1:{port}",
                host=host,
                rate=self.rate,
                timeout=self.patience,
                most_open=_MOST_OPEN,
                waits=False,
                mix={self.kind: 1.0},
            )
        )
        load.start(patience=0)
        try:
            yield load
        finally:
            load.stop(waits=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """`old` and `new`: what befalls their requests. `ends`: how it is to end, "" where it only must not go back.

    `starts`: seconds until a replica is up. `seconds`: for so long it is watched. `away`: for so many seconds
    everything is answered by 503, from so many seconds after the beginning on. `beside`: another who asks.
    """

    name: str
    new: Faults = field(default_factory=dict)
    old: Faults = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=lambda: CANARY)
    callers: Callers = Callers()
    ends: str = "rolled_back"
    starts: float = 0.3
    seconds: float = 120
    away: tuple[float, float] | None = None
    beside: Callers | None = None
    undoes: bool = False


def _alike(name: str, faults: Faults, **settings: Any) -> World:  # noqa: ANN401
    return World(name=name, new=faults, old=faults, ends="", **{"seconds": 75, **settings})


_SLOW = Callers(rate=60, patience=60)
ALIKE = (
    _alike("2 % of GETs reset, sent again", {"share": 0.02, "of": "GET", "fault": "reset"}),
    _alike("replicas close what was idle for 50 ms", {"idle": 0.05}),
    _alike("2 % of GETs hang, hedged after 5 s", {"share": 0.02, "of": "GET", "fault": "hang"}),
    _alike("GETs take exponentially long, mean 1.5 s", {"mean": 1.5}),
    _alike("every GET takes 2 s", {"takes": 2}, callers=_SLOW, seconds=120),
    _alike("every GET takes 6 s", {"takes": 6}, callers=_SLOW, seconds=150),
    _alike("every GET takes 20 s", {"takes": 20}, callers=_SLOW, seconds=180),
    _alike("both answer 503 for 1 s", {}, away=(15, 1)),
    _alike("both answer 503 for 3 s", {}, away=(15, 3)),
    _alike("nothing befalls", {}),
)
"""The same content on both sides: nobody may be taken back."""

_POSTS = Callers(Kind.POST_CLOSE, rate=50, patience=30)
_PATIENT = Callers(Kind.POST_CLOSE, rate=100, patience=150)
_SOME_HANG = {"share": 0.08, "fault": "hang"}
WORSE = (
    World(name="canary: 500 to all", new=FAILS, callers=_POSTS),
    World(name="canary: hangs", new=HANGS, callers=_POSTS),
    World(name="canary: a fifth fails after 20 s", new={"share": 0.2, "fault": "late", "after": 20}, callers=_POSTS),
    World(name="canary: 8 % hang for ever", new=_SOME_HANG, callers=_POSTS, seconds=240),
    World(name="canary: 8 % hang for ever, patience 150 s", new=_SOME_HANG, callers=_PATIENT, seconds=240),
)

_DEAD = Callers(Kind.POST_CLOSE, rate=40, patience=3)
_QUIET = Callers(rate=0.2)


def _dead(name: str, policy: Mapping[str, Any], starts: float = 0.3) -> tuple[World, ...]:
    each = (("hangs", HANGS), ("500 to all", FAILS))
    return tuple(
        World(name=f"{name}: {said}", new=new, policy=policy, starts=starts, callers=_DEAD, ends="undone")
        for said, new in each
    )


DEAD = (
    *_dead("rolling update, up after 0.3 s", ROLLING),
    *_dead("rolling update, up after 5 s", ROLLING, 5),
    *_dead("blue-green, up after 0.3 s", BLUE_GREEN),
    *_dead("blue-green, up after 5 s", BLUE_GREEN, 5),
    *_dead("blue-green, blue kept for 30 s", PARKING),
    *_dead("recreate", RECREATE),
)
"""The health check says 200, and nobody is answered: it goes back under every strategy."""

EXCUSED = (
    World(
        name="one caller hangs up at once",
        new={"takes": 0.5},
        old={"takes": 0.5},
        policy=ROLLING,
        callers=_QUIET,
        beside=Callers(rate=20, patience=0.1),
        starts=2,
        ends="completed",
    ),
    World(
        name="an undo in an outage of both",
        policy=ROLLING,
        callers=_DEAD,
        starts=3,
        ends="completed",
        away=(0, 60),
        undoes=True,
        new={},
    ),
)
"""What befalls both is no fault of the new one."""

WORLDS: Mapping[str, tuple[World, ...]] = {"alike": ALIKE, "worse": WORSE, "dead": DEAD, "excused": EXCUSED}
