"""What proxies tell, on the whole stack, under load: canaries go back or on, and replicas come, by themselves."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import pytest

from tests.support import plain_http
from tests.support.deployments import write
from tests.support.stack import ROOT, Fleet
from tests.support.waiting import eventually

pytestmark = pytest.mark.e2e

MOST_FAILED = 40
"""A revision that fails everything costs three to ten requests at 5 % of 50 a second; how many is chance, and there are
more where the machine is so busy that a new weight takes seconds."""
SENTENCE = (
    r"rolling_back: canary \d+ of \d+ failed, control 0 of \d+; "
    r"if it were no worse, the chance of seeing this would be below 1 in [\d,]+"
)
CALLERS, PAUSE_SECONDS = 4, 0.08


@dataclass
class Callers:
    """About 50 requests a second in all, as long as they run. What became of them: (status, revision)."""

    url: str
    host: str
    answers: Counter[tuple[int, str]] = field(default_factory=Counter)
    over: Event = field(default_factory=Event)

    def ask(self) -> None:
        while not self.over.wait(PAUSE_SECONDS):
            answer = plain_http.get(self.url, headers={"Host": self.host})
            revision = answer.json()["revision"] if answer.headers["Content-Type"] == "application/json" else ""
            self.answers[answer.status_code, revision] += 1

    @property
    def failed(self) -> int:
        return sum(count for (status, _), count in self.answers.items() if status != 200)


@contextmanager
def asked(envoy: str, name: str) -> Iterator[Callers]:
    callers = Callers(f"{envoy}/", name)
    eventually(lambda: plain_http.get(callers.url, headers={"Host": name}).is_success, what="a route")
    with ThreadPoolExecutor(CALLERS) as pool:
        try:
            running = [pool.submit(callers.ask) for _ in range(CALLERS)]
            yield callers
        finally:
            callers.over.set()
        for each in running:
            each.result()


def canary(*steps: str, **judge: Any) -> dict[str, Any]:
    return {"strategy": "canary", "spec": {"steps": steps, "judge": judge}}


def last_ended(fleet: Fleet, name: str, outcome: str) -> bool:
    return bool(fleet.rollouts(name)[-1]["outcome"] == outcome)


def history(fleet: Fleet, name: str) -> str:
    command = [sys.executable, "-m", "cli.main", "history", name]
    ended = subprocess.run(command, cwd=ROOT, env=fleet.environment, capture_output=True, text=True, check=True)
    return ended.stdout


def reasons(fleet: Fleet, name: str) -> list[str]:
    """Of the steps of its rollouts that changed something."""
    query = """
        SELECT s.decision->>'reason' AS reason FROM rollout_steps s JOIN rollouts o ON o.id = s.rollout_id
          JOIN deployments d ON d.id = o.deployment_id WHERE d.name = %s ORDER BY o.started_at, s.step_no
    """
    return [str(row["reason"]) for row in fleet.rows(query, name)]


def test_a_canary_that_fails_everything_costs_few_requests_and_the_history_says_why(
    running_fleet: Fleet, envoy: str
) -> None:
    fleet, name = running_fleet, "fails"
    fleet.deploy_first(name, 2, canary("5%", chance_of_false_abort="1%"))
    fleet.add_revision(name, "v2", FAIL_EVERY="1")
    with asked(envoy, name) as callers:
        fleet.activate(name, "v2")
        eventually(lambda: last_ended(fleet, name, "rolled_back"), 60, "the way back")
        before = callers.answers.total()
        eventually(lambda: callers.answers.total() > before + 50)
    assert 3 <= callers.failed <= MOST_FAILED
    assert {key for key, count in callers.answers.items() if count} == {(200, "v1"), (500, "v2")}
    assert re.search(SENTENCE, history(fleet, name))
    fleet.wait_until_ready(name, "v1", 2)


def test_a_canary_that_is_as_good_is_promoted_by_its_judge_without_a_lost_request(
    running_fleet: Fleet, envoy: str
) -> None:
    """It is compared with a fresh baseline."""
    fleet, name = running_fleet, "good"
    quickly = {"at_least": {"requests": 5, "seconds": 0}, "errors": {"allowed": "40%"}}
    policy = canary("20%", "50%", baseline="fresh", **quickly)
    fleet.deploy_first(name, 2, {**policy, "spec": {**policy["spec"], "max_surge": 2}})
    fleet.add_revision(name, "v2")
    with asked(envoy, name) as callers:
        fleet.activate(name, "v2")
        fleet.wait_until_ready(name, "v2", 2)
    assert set(callers.answers) == {(200, "v1"), (200, "v2")}
    assert last_ended(fleet, name, "completed")
    went_on = [reason for reason in reasons(fleet, name) if "canary 0 of" in reason]
    assert all(re.search(r"canary 0 of \d+ failed, baseline 0 of \d+", reason) for reason in went_on)
    assert [re.split(" of the requests, for |, for canary", reason)[0] for reason in went_on] == [
        "the canary gets 50 %",
        "the last step of the canary is over: the rest follows",
    ]


def test_more_requests_than_a_replica_should_get_bring_a_further_one(running_fleet: Fleet, envoy: str) -> None:
    fleet, name = running_fleet, "asked"
    fleet.deploy_first(name, 2)
    rule = {"metric": "requests_per_second", "source": "proxy", "comparator": ">", "threshold": 2.0, "step": 1}
    fleet.ask("set_autoscaling_rules", deployment=name, rules=[{**rule, "max_replicas": 3}])
    with asked(envoy, name) as callers:
        fleet.wait_until_ready(name, "v1", 3)
    assert set(callers.answers) == {(200, "v1")}
    assert re.search(
        r"requests_per_second is [\d.]+ > 2, as the one proxy told: from 2 to 3 replicas \(at most 3\)",
        history(fleet, name),
    )


def test_idle_replicas_that_leave_together_are_asked_to_end_after_the_acknowledgement_and_two_looks(
    running_fleet: Fleet, envoy: str
) -> None:
    fleet, name = running_fleet, "leaves"
    fleet.deploy_first(name, 3)
    eventually(lambda: plain_http.get(f"{envoy}/", headers={"Host": name}).is_success, what="a route")
    write(fleet.engine, "UPDATE proxies SET told_at = clock_timestamp()")  # its looks are waited for, however slow
    fleet.ask("destroy", deployment=name)
    query = """
        SELECT r.drain_started_at, r.out_of_traffic_at, l.looked_at, r.stop_requested_at, l.idle_looks
          FROM routes r JOIN deployments d ON d.id = r.deployment_id LEFT JOIN drain_looks l ON l.route_id = r.id
         WHERE d.name = %s
    """
    eventually(lambda: all(row["stop_requested_at"] for row in fleet.rows(query, name)), what="all to be asked")
    for row in fleet.rows(query, name):
        *times, idle_looks = row.values()
        assert times == sorted(times)
        assert idle_looks >= 2
