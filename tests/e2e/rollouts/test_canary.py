"""What proxies tell, on the whole stack, under load: canaries go back or on, and replicas come, by themselves."""

import re
import subprocess
import sys
from typing import Any

import pytest

from tests.support.proxies import plain_http
from tests.support.rows.deployments import write
from tests.support.stack.stack import ROOT, Fleet
from tests.support.stack.waiting import eventually
from tests.support.workers.callers import asked

pytestmark = pytest.mark.e2e

MOST_FAILED = 40
"""A revision that fails everything costs three to ten requests at 5 % of 50 a second; how many is chance, and there are
more where the machine is so busy that a new weight takes seconds."""
SENTENCE = (
    r"rolling_back: failures: canary [\d.]+ % \(\d+ of \d+\), control none of \d+, "
    r"worse \(chance below 1 in [\d,]+ if it failed no more often than allowed\)"
)


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
    running_fleet: Fleet, envoy_url: str
) -> None:
    fleet, name = running_fleet, "fails"
    fleet.deploy_first(name, 2, canary("5%", chance_of_false_abort="1%"))
    fleet.add_revision(name, "v2", FAIL_EVERY="1")
    with asked(envoy_url, name) as load:
        fleet.activate(name, "v2")
        eventually(lambda: last_ended(fleet, name, "rolled_back"), what="the way back")
        before = load.tally.answers.total()
        eventually(lambda: load.tally.answers.total() > before + 50)
    assert 3 <= load.tally.failed.total() <= MOST_FAILED
    assert {key for key, count in load.tally.answers.items() if count} == {(200, "v1"), (500, "v2")}
    assert re.search(SENTENCE, history(fleet, name))
    fleet.wait_until_ready(name, "v1", 2)


def test_a_canary_that_is_as_good_is_promoted_by_its_judge_without_a_lost_request(
    running_fleet: Fleet, envoy_url: str
) -> None:
    """It is compared with a fresh baseline."""
    fleet, name = running_fleet, "good"
    lenient = {measure: {"allowed": "40%"} for measure in ("errors", "refused", "redirected")}
    quickly = {"at_least": {"requests": 5, "seconds": 0}, **lenient}
    policy = canary("20%", "50%", baseline="fresh", **quickly)
    fleet.deploy_first(name, 2, {**policy, "spec": {**policy["spec"], "max_surge": 2}})
    fleet.add_revision(name, "v2")
    with asked(envoy_url, name) as load:
        fleet.activate(name, "v2")
        fleet.wait_until_ready(name, "v2", 2)
    assert set(load.tally.answers) == {(200, "v1"), (200, "v2")}
    assert last_ended(fleet, name, "completed")
    went_on = [reason for reason in reasons(fleet, name) if ": none of " in reason]
    verdict = r", for failures, refusals and redirections: none of [\d,]+, good(; [\d,]+ under way to the canary, .+)?$"
    assert not [reason for reason in went_on if not re.search(verdict, reason)]
    assert [re.split(" of the requests, for |, for failures", reason)[0] for reason in went_on] == [
        "the canary gets 50 %",
        "the last step of the canary is over: the rest follows",
    ]


def mirrored(seconds: float, **judge: Any) -> dict[str, Any]:
    policy = canary("50%", **judge)
    return {**policy, "spec": {**policy["spec"], "mirror": {"share": "100%", "seconds": seconds}}}


def printed(fleet: Fleet, name: str, revision: str) -> str:
    """What the one replica of that revision has printed, though it may be gone."""
    query = """
        SELECT r.id FROM routes r JOIN deployments d ON d.id = r.deployment_id JOIN revisions v ON v.id = r.revision_id
         WHERE d.name = %s AND v.name = %s
    """
    (route,) = fleet.rows(query, name, revision)
    (log,) = fleet.home.rglob(f"{route['id']}*.log")
    return log.read_text()


def test_a_canary_that_fails_copies_goes_back_before_any_caller_met_it_and_one_that_does_not_gets_its_weight(
    running_fleet: Fleet, envoy_url: str
) -> None:
    """Copies are of GETs alone: the service prints a line for each POST."""
    fleet, name = running_fleet, "copied"
    fleet.deploy_first(name, 1, mirrored(600))
    fleet.add_revision(name, "v2", FAIL_EVERY="1")
    fleet.add_revision(name, "v3")

    def posted_until_it_went_back() -> bool:
        assert plain_http.request("POST", f"{envoy_url}/mend", headers={"Host": name}).is_success
        return last_ended(fleet, name, "rolled_back")

    with asked(envoy_url, name) as load:
        fleet.activate(name, "v2")
        eventually(posted_until_it_went_back)
        assert set(load.tally.answers) == {(200, "v1")}
        harm = r"rolling_back: \d+ of \d+ answered copies failed, and 0 of all requests, worse \(chance below "
        assert re.search(harm, history(fleet, name))
        assert "mended" in printed(fleet, name, "v1")
        assert "mended" not in printed(fleet, name, "v2")

        quickly = {
            "at_least": {"requests": 5, "seconds": 0},
            "errors": {"allowed": "40%"},
            "refused": {"allowed": "40%"},
            "redirected": {"allowed": "40%"},
        }
        fleet.ask("set_policy", deployment=name, policy=mirrored(1, **quickly))
        fleet.activate(name, "v3")
        fleet.wait_until_ready(name, "v3", 1)
    assert set(load.tally.answers) == {(200, "v1"), (200, "v3")}
    stages = [reason.partition(" of the requests")[0] for reason in reasons(fleet, name)]
    assert [stage for stage in stages if stage.startswith("the canary gets")] == [
        *["the canary gets copies of 100 %"] * 2,
        "the canary gets 50 %",
    ]


def test_more_requests_than_a_replica_should_get_bring_a_further_one(running_fleet: Fleet, envoy_url: str) -> None:
    fleet, name = running_fleet, "asked"
    fleet.deploy_first(name, 2)
    rule = {"metric": "requests_per_second", "source": "proxy", "comparator": ">", "threshold": 2.0, "step": 1}
    fleet.ask("set_autoscaling_rules", deployment=name, rules=[{**rule, "max_replicas": 3}])
    with asked(envoy_url, name) as load:
        fleet.wait_until_ready(name, "v1", 3)
    assert set(load.tally.answers) == {(200, "v1")}
    assert re.search(
        r"requests_per_second is [\d.]+ > 2, as the one proxy told: from 2 to 3 replicas \(at most 3\)",
        history(fleet, name),
    )


def test_idle_replicas_that_leave_together_are_asked_to_end_after_the_acknowledgement_and_two_looks(
    running_fleet: Fleet, envoy_url: str
) -> None:
    fleet, name = running_fleet, "leaves"
    fleet.deploy_first(name, 3)
    eventually(lambda: plain_http.get(f"{envoy_url}/", headers={"Host": name}).is_success, what="a route")
    write(fleet.engine, "UPDATE proxies SET told_at = clock_timestamp()")  # its looks are waited for, however slow
    fleet.ask("destroy", deployment=name)
    query = """
        SELECT r.drain_started_at, r.out_of_traffic_at, l.looked_at, r.stop_requested_at, l.idle_looks
          FROM routes r JOIN deployments d ON d.id = r.deployment_id LEFT JOIN drain_looks l ON l.route_id = r.id
         WHERE d.name = %s
    """
    eventually(lambda: all(row["stop_requested_at"] for row in fleet.rows(query, name)), what="all to be asked")
    for row in fleet.rows(query, name):
        drained, out_of_traffic, looked_at, asked_to_end, idle_looks = row.values()
        assert drained <= out_of_traffic <= asked_to_end
        assert idle_looks >= 2
        assert looked_at <= asked_to_end or idle_looks > 2, "a further look may be under way when it is asked to end"
