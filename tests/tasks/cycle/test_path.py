"""The path of one event is the one that the README tells: hop by hop, and nothing that reads or writes decides."""

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

import redis
from sqlalchemy import Engine

from domain.handlers import HANDLERS
from domain.model.events import DoDeploymentLifecycleEvent
from tasks.cycle.coordinator import DeploymentCoordinator
from tasks.redis.locks import Slots
from tasks.redis.wake import Waker
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import make_deployment

ROOT = Path(__file__).parents[3]

HOPS = {
    "lock": ("tasks/redis/locks.py", "hold"),
    "claim": ("db/cycle/claim.py", "claim_due"),
    "glance": ("domain/handlers/deploying_provisioning.py", "glance"),
    "load": ("db/cycle/load.py", "load"),
    "decide": ("domain/handlers/", "decide"),
    "classify": ("domain/cycle/transitions.py", "classify"),
    "apply": ("db/cycle/applier.py", "apply"),
    "log": ("tasks/cycle/decision_log.py", "log_chunk"),
    "wake": ("tasks/redis/wake.py", "send"),
}
"""The function in which each hop begins. Beat and the task before them run in processes of their own."""

DECIDING = {"glance", "wait_by_counts", "decide", "evaluate_one", "evaluate_cycle", "classify"}


@dataclass
class Trail:
    """`hops`: in the order in which they began; what a hop calls belongs to it. `climbs`: out of db, to decide."""

    hops: list[str] = field(default_factory=list)
    climbs: list[str] = field(default_factory=list)

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(str(ROOT)):
            return
        hop, (file, name) = hop_of(frame.f_code), place(frame.f_code)
        if hop is not None and not any(map(hop_of, callers_of(frame))) and hop not in self.hops:
            self.hops.append(hop)
        if file.startswith("domain/") and name in DECIDING:
            callers = [place(code)[0] for code in callers_of(frame)]
            self.climbs += [f"{caller} calls {name}" for caller in callers if caller.startswith("db/cycle/")]


def place(code: CodeType) -> tuple[str, str]:
    return code.co_filename.removeprefix(f"{ROOT}/"), code.co_name


def hop_of(code: CodeType) -> str | None:
    file, name = place(code)
    return next((hop for hop, (where, begins) in HOPS.items() if file.startswith(where) and name == begins), None)


def callers_of(frame: FrameType) -> Iterator[CodeType]:
    caller = frame.f_back
    while caller is not None:
        yield caller.f_code
        caller = caller.f_back


@contextmanager
def followed() -> Iterator[Trail]:
    trail, before = Trail(), sys.getprofile()
    sys.setprofile(trail)
    try:
        yield trail
    finally:
        sys.setprofile(before)


def test_an_event_takes_the_hops_of_the_readme_and_no_hop_calls_back(
    engine: Engine, client: redis.Redis, waker: Waker
) -> None:
    make_deployment(engine, "■■■|", name="moves", status=PROVISIONING)
    make_deployment(engine, "■■|◇", name="waits", status=PROVISIONING)
    slots = Slots(client, 1, 5, waker.send)
    coordinator = DeploymentCoordinator(engine, slots, waker, HANDLERS, 10, 5, threading.Event())
    with followed() as trail:
        seen = coordinator.process_deployment_lifecycle(DoDeploymentLifecycleEvent.parse("deploying", "provisioning"))
    assert seen == 2
    assert trail.hops == list(HOPS)
    assert trail.climbs == []


def test_the_readme_tells_these_hops_and_these_files() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.partition("## The path of one event")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| \[[^]]+\]\(([\w/.]+)\)", section, re.MULTILINE)
    assert rows[:2] == [("beat", "tasks/wire/schedule.py"), ("task", "tasks/lifecycle.py")]
    assert rows[2:] == [(hop, file) for hop, (file, _) in HOPS.items()]
