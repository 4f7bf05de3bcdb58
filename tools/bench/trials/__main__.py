"""`python -m tools.bench.trials [alike|worse|dead|excused ...] [--times 5] [--only WORDS]`: rollouts with real proxies.

Workers, a beat, the server for proxies and an Envoy, replicas that answer as their world says, and callers who count
what they lose. A line for each trial, then a table; all of it is in tools/bench/results/trials.json. Exits with 1 where
one ended otherwise than it should.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from cli.demo.load.generator import Load
from tests.support.proxies.edge import api_process, envoy_process
from tests.support.stack.waiting import NotInTimeError, eventually
from tools.bench.environment import environment
from tools.bench.stage import Stage, stage
from tools.bench.trials.worlds import WORLDS, World

RESULTS = Path("tools/bench/results/trials.json")
REPLICA = Path(__file__).parents[1].resolve() / "replica.py"
REPLICAS = 3
AFTER_SECONDS = 3.0
"""For so long it is asked on after its end."""

_ROLLOUTS = """
    SELECT o.outcome, o.is_undo, o.back_reason, o.reason, extract(epoch FROM o.started_at)::float8 AS began,
           (SELECT coalesce(sum(a.begun), 0)::int FROM answers a
             WHERE a.rollout_id = o.id AND a.revision_id = o.to_revision_id) AS sent,
           extract(epoch FROM o.ended_at)::float8 AS ended, o.weight
      FROM rollouts o JOIN deployments d ON d.id = o.deployment_id WHERE d.name = %s ORDER BY o.started_at
"""


class Edge(NamedTuple):
    """Where callers ask: the workers' stage and the port of its Envoy."""

    made: Stage
    port: int


class Trial(NamedTuple):
    """What came of one. `ended`: how; `seconds`: from its beginning to that end; `said`: why it went back.

    `sent`: requests that the new revision was sent, as the proxy counted; without any nothing was tried. `weight`: of a
    canary that continues, so many of 10,000 requests.
    """

    world: str
    ended: str
    seconds: float
    lost: int
    asked: int
    lost_after: int
    sent: int
    weight: int | None
    said: str
    is_right: bool


@contextmanager
def edge() -> Iterator[Edge]:
    """Everything runs, and ends with the block."""
    with stage() as made:
        made.start_workers("worker1", "worker2")
        made.start_beat()
        api = api_process(made.database, made.environment["REDIS_URL"], made.home)
        proxy = envoy_process(api, made.home)
        try:
            api.start()
            proxy.start()
            yield Edge(made, proxy.port)
        finally:
            for process in (proxy, api):
                if process.process is not None:
                    process.end(kill=True)


def tried(at: Edge, world: World, number: int) -> Trial:
    """One rollout of this world, of a deployment of its own."""
    made, name = at.made, f"trial{number}"
    away = made.home / f"{name}.away"
    _deploy(made, name, world, away)
    with world.callers.calling(at.port, name) as load:
        eventually(lambda: load.tally.answers[200, "v1"], 30, f"{name} to answer")
        if world.undoes:
            made.activate(name, "v2")
            made.wait_until_idle(name, within=120)
            eventually(lambda: _is_proven(made, name), 60, "an answer")
        time.sleep(AFTER_SECONDS)
        if world.beside:
            with world.beside.calling(at.port, name):
                return _watched(made, name, world, load, away)
        return _watched(made, name, world, load, away)


def _watched(made: Stage, name: str, world: World, load: Load, away: Path) -> Trial:
    during = load.begin_phase("during")
    before = len(made.rows(_ROLLOUTS, name))
    if world.undoes:
        away.touch()
        made.ask("undo", deployment=name)
    else:
        made.activate(name, "v2")
    began = time.monotonic()

    def has_ended() -> bool:
        if world.away:
            since, lasts = world.away
            passed = time.monotonic() - began
            (away.touch if since <= passed < since + lasts else partial(away.unlink, missing_ok=True))()
        return bool(_end_of(made.rows(_ROLLOUTS, name)[before:], world))

    with suppress(NotInTimeError):
        eventually(has_ended, world.seconds, "its end")
    away.unlink(missing_ok=True)
    after = load.begin_phase("after")
    time.sleep(AFTER_SECONDS)
    load.begin_phase("later")
    time.sleep(world.callers.patience)
    rows = made.rows(_ROLLOUTS, name)[before:]
    ended = _end_of(rows, world) or (rows[-1]["outcome"] or "continues")
    reasons = [row["back_reason"] or (row["reason"] if row["is_undo"] else "") for row in rows]
    took = (rows[-1]["ended"] or time.time()) - rows[0]["began"]
    return Trial(
        world=world.name,
        ended=ended,
        seconds=took,
        lost=during.failed.total() + after.failed.total(),
        asked=during.requests + after.requests,
        lost_after=after.failed.total(),
        sent=rows[0]["sent"],
        weight=rows[-1]["weight"],
        said=next(filter(None, reasons), ""),
        is_right=ended == world.ends if world.ends else ended in ("continues", "completed"),
    )


def _end_of(rows: Sequence[dict[str, Any]], world: World) -> str:
    """Empty while it continues."""
    last = rows[-1]
    if last["is_undo"] and not world.undoes:
        return "undone" if last["outcome"] == "completed" else ""
    if last["outcome"] == "completed" and world.ends == "undone":
        return ""  # it is not proven yet
    went_back = last["outcome"] == "rolled_back"
    return ("undone" if world.ends == "undone" else "rolled_back") if went_back else last["outcome"] or ""


def _is_proven(made: Stage, name: str) -> bool:
    query = "SELECT o.unanswered FROM rollouts o JOIN deployments d ON d.id = o.deployment_id WHERE d.name = %s"
    return bool(made.rows(query, name)[-1]["unanswered"] is None)


def _deploy(made: Stage, name: str, world: World, away: Path) -> None:
    made.ask("create_deployment", deployment=name, desired_replicas=REPLICAS, policy=dict(world.policy))
    for revision, faults in (("v1", world.old), ("v2", world.new)):
        told = json.dumps({**faults, "away": str(away)})
        spec = {
            "command": [sys.executable, str(REPLICA)],
            "env": {"VERSION": revision, "STARTUP_SECONDS": str(world.starts), "FAULTS": told},
            "health_check": {"interval_seconds": 0.3, "start_deadline_seconds": 30},
            "drain_seconds": 1,
        }
        made.ask("add_revision", deployment=name, name=revision, spec=spec)
    made.activate(name, "v1")
    made.wait_until_idle(name, within=120)


def main() -> None:
    """Each world in turn, its trials beside each other."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.trials", description="Rollouts with real proxies.")
    parser.add_argument("kinds", nargs="*", choices=[*WORLDS, []], help="these kinds of worlds; all by default")
    parser.add_argument("--times", type=int, default=1, help="so many trials of each world, beside each other")
    parser.add_argument("--only", default="", help="worlds whose name has these words")
    arguments = parser.parse_args()
    worlds = [world for kind in arguments.kinds or WORLDS for world in WORLDS[kind] if arguments.only in world.name]
    found: list[Trial] = []
    with edge() as at, ThreadPoolExecutor(arguments.times) as pool:
        for place, world in enumerate(worlds):
            numbers = range(place * arguments.times, (place + 1) * arguments.times)
            for trial in pool.map(partial(tried, at, world), numbers):
                found.append(trial)
                print(json.dumps(trial._asdict(), ensure_ascii=False), flush=True)
            for number in numbers:
                at.made.ask("destroy", deployment=f"trial{number}")
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps({**environment(), "trials": [trial._asdict() for trial in found]}, indent=2) + "\n")
    print("\n".join(table(found)))
    sys.exit(any(not trial.is_right for trial in found))


def table(found: Sequence[Trial]) -> Iterator[str]:
    """In Markdown, a row for each world."""
    yield "| world | ended | after | lost of asked | lost in 3 s after it | sent to the new one |"
    yield "|---|---|---|---|---|---|"
    for name in dict.fromkeys(trial.world for trial in found):
        of = [trial for trial in found if trial.world == name]
        ends = ", ".join(f"{count} {end}" for end, count in Counter(map(_said_of, of)).items())
        seconds = " ".join(f"{each.seconds:.0f}" for each in of)
        lost, asked = sum(each.lost for each in of), sum(each.asked for each in of)
        late, sent = sum(each.lost_after for each in of), sum(each.sent for each in of)
        yield f"| {name} | {ends} | {seconds} s | {lost} of {asked:,} | {late} | {sent:,} |"


def _said_of(trial: Trial) -> str:
    at = f" at {trial.weight / 100:g} %" if trial.ended == "continues" and trial.weight else ""
    return f"{trial.ended}{at}"


if __name__ == "__main__":
    main()
