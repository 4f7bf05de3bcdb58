"""A deployment for each policy and way, all steered at once."""

import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from sqlalchemy import Engine

from domain.handlers.dispatch import HANDLERS
from domain.model.states import RouteStatus
from domain.text.errors import RollwayError
from tests.support.pictures.policies import BLUE_GREEN, CONTINUOUS, COUNTING, COUNTING_BLUE_GREEN, PARKING, RECREATE
from tests.support.rows.deployments import ROLLING, ask, become, make_deployment, read, start_all, write
from tests.support.workers.coordinators import coordinator_without_redis

WAYS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "there": [("activate_revision", {"revision": "v2"})],
    "there and back": [("activate_revision", {"revision": "v2"}), ("activate_revision", {"revision": "v1"})],
    "undone half way": [("activate_revision", {"revision": "v2"}), ("abort", {})],
    "growing": [("activate_revision", {"revision": "v2", "desired_replicas": 6})],
    "growing, undone half way": [("activate_revision", {"revision": "v2", "desired_replicas": 6}), ("abort", {})],
    "shrinking, undone half way": [("activate_revision", {"revision": "v2", "desired_replicas": 1}), ("abort", {})],
    "scaled half way": [
        ("activate_revision", {"revision": "v2"}),
        ("scale", {"desired_replicas": 7}),
        ("scale", {"desired_replicas": 2}),
        ("scale", {"desired_replicas": 0}),
        ("scale", {"desired_replicas": 4}),
    ],
    "superseded half way": [
        ("activate_revision", {"revision": "v2"}),
        ("activate_revision", {"revision": "v3", "supersede": True}),
        ("activate_revision", {"revision": "v1", "supersede": True}),
    ],
    "another policy half way": [
        ("activate_revision", {"revision": "v2"}),
        ("set_policy", {"policy": ROLLING}),
        ("activate_revision", {"revision": "v3", "supersede": True}),
        ("set_policy", {"policy": BLUE_GREEN}),
        ("activate_revision", {"revision": "v2", "supersede": True}),
    ],
    "without a policy": [("set_policy", {"policy": None}), ("activate_revision", {"revision": "v2"})],
    "scaled at rest": [("scale", {"desired_replicas": size}) for size in (6, 5, 1, 0, 3)],
    "destroyed half way": [("activate_revision", {"revision": "v2"}), ("destroy", {})],
}
STOPPED = "UPDATE routes SET status = 'terminated', stopped_at = now() WHERE status = 'terminating'"
POLICIES: dict[str, Any] = {
    "rolling": ROLLING,
    "counting": COUNTING,
    "continuous": CONTINUOUS,
    "blue-green": BLUE_GREEN,
    "counting-blue-green": COUNTING_BLUE_GREEN,
    "parking": PARKING,
    "recreate": RECREATE,
}


def busy_fleet(engine: Engine, cycles: int, weather: random.Random | None = None) -> Iterator[None]:
    """A deployment for each policy and way, all steered at once, `cycles` of everything between two commands.

    It pauses after every chunk, for whoever wants to look. `weather`: replicas fall ill, fail and recover by dice.
    """
    fleet = {}
    for policy, settings_of in POLICIES.items():
        for way, commands in WAYS.items():
            name = f"{policy}-{way}".replace(" ", "-").replace(",", "")
            made = make_deployment(engine, "■■■", name=name, policy=settings_of)
            write(engine, "INSERT INTO revisions (deployment_id, name, spec) VALUES (%s, 'v3', '{}')", made.id)
            fleet[name] = commands
    for number in range(max(map(len, fleet.values()))):
        for name, commands in fleet.items():
            if number < len(commands):
                command, payload = commands[number]
                with suppress(RollwayError):  # where it means nothing, or must wait
                    ask(engine, command, deployment=name, **payload)
        yield from world_goes_on(engine, cycles, weather)
    yield from world_goes_on(engine, 99)


def world_goes_on(engine: Engine, cycles: int, weather: random.Random | None = None) -> Iterator[None]:
    """Everything that can happen happens, so many times, or until nothing moves."""
    coordinator = coordinator_without_redis(engine, chunk=17)
    for _ in range(cycles):
        seen = 0
        for handler in HANDLERS.values():
            while found := coordinator.process_chunk(handler).looked_at:
                seen += found
                yield
        if not seen and weather is None:
            return
        rain(engine, weather) if weather else start_all(engine)
        write(engine, STOPPED)
        write(engine, "UPDATE deployments SET due_at = now() WHERE lifecycle IN ('scaling', 'deploying', 'destroying')")
        yield


def rain(engine: Engine, dice: random.Random) -> None:
    """Half of the replicas become something; an hour goes by for what waits for time."""
    live = read(engine, "SELECT id FROM routes WHERE status NOT IN ('terminating', 'terminated', 'failed')")
    chosen = [route["id"] for route in dice.sample(live, len(live) // 2)]
    sick, failed = len(chosen) // 5, len(chosen) // 10
    become(engine, RouteStatus.UNHEALTHY, *chosen[:sick])
    become(engine, RouteStatus.FAILED, *chosen[sick : sick + failed])
    become(engine, RouteStatus.HEALTHY, *chosen[sick + failed :])
    write(engine, "UPDATE routes SET status_changed_at = status_changed_at - interval '1 hour'")
    write(engine, "UPDATE deployments SET last_failed_at = last_failed_at - interval '1 hour'")
    write(engine, "UPDATE deployments SET due_at = now() WHERE due_at IS NOT NULL")
