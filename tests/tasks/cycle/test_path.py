"""The path of one event is the one that the README tells: hop by hop, and nothing that reads or writes decides.

Where the line runs. Before the decision `db/cycle` may call what makes a snapshot out of rows: READING names all of it.
None of that is a rule of a rollout but `Gate.hold`, which is asked under the locks that the claim has taken. From the
first `classify` on nothing in db calls a function of the domain: what a decision leaves behind, its record, its events
and the hosts of its new replicas come to the applier as finished values, whose fields it copies.
"""

import ast
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from inspect import isfunction
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
import redis
from sqlalchemy import Engine

from domain.handlers.dispatch import HANDLERS
from domain.model.lifecycle_events import DoDeploymentLifecycleEvent
from tasks.cycle.coordinator import DeploymentCoordinator
from tasks.redis.locks import Slots
from tasks.redis.wake import Waker
from tests.support.faults.faults_at_rest import SUBSCRIPTION
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import ROLLING, make_deployment, read, write
from tests.support.rows.hosts import up
from tests.support.workers.coordinators import coordinator_without_redis, handler_for

ROOT = Path(__file__).parents[3]

HOPS = {
    "lock": ("tasks/redis/locks.py", "hold"),
    "claim": ("db/cycle/claim.py", "claim_due"),
    "glance": ("domain/handlers/deploying.py", "glance"),
    "load": ("db/cycle/claim.py", "load"),
    "decide": ("domain/handlers/", "decide"),
    "classify": ("domain/cycle/transitions.py", "classify"),
    "apply": ("db/cycle/applier.py", "apply"),
    "log": ("tasks/cycle/decision_log.py", "log_chunk"),
    "wake": ("tasks/redis/wake.py", "send"),
}
"""The function in which each hop begins. Beat and the task before them run in processes of their own."""

READING = {"device_room", "most_at_once", "is_judged", "with_devices", "with_evidence", "stored_policy"}
"""The functions of the domain that db/cycle imports, all of them to read rows into snapshots."""

DECIDING = {"glance", "wait_by_counts", "decide", "evaluate_one", "evaluate_cycle", "classify"}


PRODUCT = re.compile("(api|cli|db|domain|runtime|stack|tasks|traffic)/")
OURS = re.compile("(api|cli|db|domain|runtime|stack|tasks|tests|traffic)/")


@dataclass
class Trail:
    """`hops`: in the order in which they began; what a hop calls belongs to it.

    `climbs`: out of db into the domain: to decide, or anything at all after the decision. `files`: those of the product
    that were entered, each with the function that was called there first.
    """

    hops: list[str] = field(default_factory=list)
    climbs: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(str(ROOT)):
            return
        hop, (file, name) = hop_of(frame.f_code), place(frame.f_code)
        if hop is not None and not any(map(hop_of, callers_of(frame))) and hop not in self.hops:
            self.hops.append(hop)
        if PRODUCT.match(file):
            self.files.setdefault(file, name)
        if not file.startswith("domain/"):
            return
        callers = [place(code)[0] for code in callers_of(frame)]
        if name in DECIDING:
            self.climbs += [f"{caller} calls {name}" for caller in callers if caller.startswith("db/cycle/")]
        caller = next(filter(OURS.match, callers), "")
        if "classify" in self.hops and caller.startswith("db/"):
            self.climbs.append(f"{caller} calls {name}")


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
    engine: Engine, redis_client: redis.Redis, waker: Waker
) -> None:
    make_deployment(engine, "■■■|", name="moves", status=PROVISIONING)
    make_deployment(engine, "■■|◇", name="waits", status=PROVISIONING)
    slots = Slots(redis_client, 1, 5, waker.send)
    coordinator = DeploymentCoordinator(engine, slots, waker, HANDLERS, 10, 5, threading.Event())
    with followed() as trail:
        seen = coordinator.process_deployment_lifecycle(DoDeploymentLifecycleEvent.parse("deploying", "provisioning"))
    assert seen == 2
    assert trail.hops == list(HOPS)
    assert trail.climbs == []
    path = (ROOT / "docs/architecture.md").read_text(encoding="utf-8").partition("## The path of one event")[2]
    named = set(filter(PRODUCT.match, re.findall(r"\]\(\.\./([\w/]+\.py)\)", path.partition("\n## ")[0])))
    assert {file: name for file, name in trail.files.items() if file not in named} == {}
    assert len(named) <= 40


MANUAL = {"strategy": "blue_green", "spec": {"auto_promote": False}}
AUTO = {"strategy": "blue_green", "spec": {"auto_promote": True}}


@pytest.mark.parametrize(
    ("drawn_as", "policy", "written"),
    [
        pytest.param("■■■|", ROLLING, {"steps": 1, "records": 1, "events": 0}, id="a step of many"),
        pytest.param("|■■■", ROLLING, {"steps": 1, "records": 1, "events": 1}, id="the last move"),
        pytest.param("■■■|□□□", AUTO, {"steps": 1, "records": 1, "events": 2}, id="traffic moves"),
        pytest.param("■■■|□□□", MANUAL, {"steps": 0, "records": 0, "events": 1}, id="a wait that stops the clock"),
        pytest.param("■■■|□□◇", MANUAL, {"steps": 0, "records": 0, "events": 0}, id="a wait"),
    ],
)
def test_after_the_decision_nothing_of_the_domain_is_called_from_db(
    engine: Engine, drawn_as: str, policy: Mapping[str, Any], written: dict[str, int]
) -> None:
    """Somebody is subscribed, and there are hosts to choose from."""
    make_deployment(engine, drawn_as, status=PROVISIONING, policy=policy)
    write(engine, SUBSCRIPTION)
    up(engine, "a", "b")
    with followed() as trail:
        coordinator_without_redis(engine).process_chunk(handler_for(PROVISIONING))
    assert "apply" in trail.hops
    assert trail.climbs == []
    tables = {"steps": "rollout_steps", "records": "deployment_history", "events": "outbox"}
    assert {what: len(read(engine, f"SELECT FROM {table}")) for what, table in tables.items()} == written


def test_db_cycle_imports_types_and_what_reads_rows() -> None:
    imported = {
        (node.module, alias.name)
        for path in (ROOT / "db/cycle").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("domain.")
        for alias in node.names
    }
    found = {name: getattr(import_module(module), name) for module, name in imported}
    assert {name for name, value in found.items() if isfunction(value)} == READING


def test_the_readme_tells_these_hops_and_these_files() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.partition("## The path of one event")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| \[[^]]+\]\(([\w/.]+)\)", section, re.MULTILINE)
    assert rows[:2] == [("beat", "tasks/worker/beat.py"), ("task", "tasks/lifecycle.py")]
    assert rows[2:] == [(hop, file) for hop, (file, _) in HOPS.items()]
