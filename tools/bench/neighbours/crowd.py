"""The crowd: whoever has a small token, or none, and takes all that it gives him, without a pause."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from uuid import uuid4

import httpx

from domain.installation.tokens import Role
from tools.bench.neighbours.stand import Stand

_HANGS_UP_AFTER = 0.5
_WRONG_TOKENS_A_SECOND = 35
_ASKS_AGAIN_AFTER = 0.1
"""Of who is refused, too: no Retry-After is heeded."""
_REFERENCES = 100
_GREEDY = "greedy"
_LARGE = 5_000
"""Replicas of what the viewer plans: the simulated runs of a plan take seconds of processor time."""

REPLICAS: Mapping[str, str] = {
    "forks": "import os, time\nwhile True:\n try: os.fork() or time.sleep(600)\n except OSError: time.sleep(0.1)",
    "ports": """
import socket, time
held = []
while True:
    for port in range(20000, 30000):
        try:
            held.append(socket.create_server(("127.0.0.1", port)))
        except OSError:
            pass
    time.sleep(1)
""",
    "prints": "while True: print('x' * 4000)",
}
"""What the operator's replicas do. None of them ever answers a health check, so each is started again and again."""


@dataclass(frozen=True)
class Crowd:
    """Everybody at once; `met` counts what each was answered."""

    stand: Stand
    over: threading.Event
    met: Counter[str]

    def note(self, who: str, answer: httpx.Response) -> None:
        """Count an answer."""
        self.met[f"{who}: {answer.status_code}"] += 1

    def plan_and_hang_up(self, viewer: httpx.Client) -> None:
        """A viewer, in several places at once."""
        try:
            body = {"desired_replicas": _LARGE - 1}
            self.note("plan", viewer.post("/v1/deployments/large/scale/plan", json=body, timeout=_HANGS_UP_AFTER))
        except httpx.TimeoutException:
            self.met["plan: hung up"] += 1
        time.sleep(_ASKS_AGAIN_AFTER)

    def ask_for_secrets(self, operator: httpx.Client) -> None:
        """An operator for one deployment adds revisions that are full of programs, and activates each."""
        name = f"v{uuid4().hex[:10]}"
        env = {f"S{number}": {"secret": f"command:/bin/sleep {number}.{name[1:4]}"} for number in range(_REFERENCES)}
        spec = {"command": ["sleep", "600"], "env": env}
        added = operator.post(f"/v1/deployments/{_GREEDY}/revisions", json={"name": name, "spec": spec})
        self.note("secrets, added", added)
        with suppress(httpx.TimeoutException):
            self.note("secrets", operator.post(f"/v1/deployments/{_GREEDY}/activate", json={"revision": name}))
        time.sleep(1)

    def guess(self, stranger: httpx.Client) -> None:
        """Without a token: a wrong one, many times a second."""
        shown = {"authorization": f"Bearer {uuid4()}"}
        self.note("wrong token", stranger.get("/v1/deployments", headers=shown))
        time.sleep(1 / _WRONG_TOKENS_A_SECOND)

    def script(self, stranger: httpx.Client) -> None:
        """What a script of a service sends: forms and streams of the page, with no session."""
        origin = {"origin": self.stand.envoy_url}
        self.note("script", stranger.post("/deployments/web/pause", data={"reason": "x"}, headers=origin))
        self.note("script", stranger.get("/v1/events", headers=origin))
        time.sleep(_ASKS_AGAIN_AFTER)


DOING: Mapping[str, tuple[Role | None, int, Callable[[Crowd, httpx.Client], None]]] = {
    "plans": (Role.VIEWER, 4, Crowd.plan_and_hang_up),
    "secrets": (Role.OPERATOR, 2, Crowd.ask_for_secrets),
    "guesses": (None, 1, Crowd.guess),
    "scripts": (None, 1, Crowd.script),
}
"""By name: with which role, in how many places at once, what."""
NAMES = (*REPLICAS, *DOING)


@contextmanager
def crowd(stand: Stand, names: Sequence[str]) -> Iterator[Counter[str]]:
    """Let these of NAMES take what they get until the block ends; gives the counts of what they were answered."""
    made = Crowd(stand, threading.Event(), Counter())
    for name in REPLICAS.keys() & names:
        code = ["python3", "-c", REPLICAS[name]]
        stand.deploy(f"{_GREEDY}-{name}", code, replicas=2, role=Role.OPERATOR, health_check={})
    stand.deploy(_GREEDY, ["sleep", "600"], replicas=1, role=Role.OPERATOR)
    stand.deploy("large", ["sleep", "600"], replicas=0, role=Role.OPERATOR)
    threads = []
    for name in DOING.keys() & names:
        role, places, do = DOING[name]
        client = stand.client(role) if role else stand.stranger()
        threads += [threading.Thread(target=_until, args=(made, do, client)) for _ in range(places)]
    for thread in threads:
        thread.start()
    try:
        yield made.met
    finally:
        made.over.set()
        for thread in threads:
            thread.join()


def _until(made: Crowd, do: Callable[[Crowd, httpx.Client], None], client: httpx.Client) -> None:
    while not made.over.is_set():
        try:
            do(made, client)
        except httpx.HTTPError:
            time.sleep(0.1)
