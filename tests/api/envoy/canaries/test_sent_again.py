"""What Envoy mends by sending a request again counts on both sides alike: first tries are what a judge compares."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.api.envoy.canaries.test_judged import ended, judging, rollout
from tests.support.proxies.edge import Edge
from tests.support.rows.deployments import write
from tests.support.stack.waiting import eventually
from tests.support.worlds.rolling import Rolling, served

MANY = 10_000
HEDGE_AFTER = 0.3


def ask_at_once(this: Rolling, times: int) -> set[int]:
    with ThreadPoolExecutor(10) as callers:
        return {answers[0].status_code for answers in callers.map(lambda _: this.ask(), range(times))}


def spoil(this: Rolling, every: int, seconds: float = 0.0) -> None:
    for replica in (this.old, this.new):
        replica.spoils_every, replica.spoils_seconds, replica.spoilt = every, seconds, 0


@pytest.mark.parametrize(("seconds", "asked"), [(0.0, 300), (10 * HEDGE_AFTER, 150)], ids=["reset", "late"])
def test_first_tries_that_fail_alike_abort_nobody_and_no_caller_loses_anything(
    envoy_edge: Edge, seconds: float, asked: int
) -> None:
    with judging(envoy_edge, MANY) as this:
        hedge = "UPDATE deployments SET hedge_after_seconds = %s WHERE id = %s"
        write(envoy_edge.routes.engine, hedge, HEDGE_AFTER if seconds else None, this.made.id)
        envoy_edge.routes.tell()
        came = this.came()
        spoil(this, 8, seconds)
        assert ask_at_once(this, asked) == {200}
        eventually(lambda: sum(answers.done for answers in came()) == asked)
        spoilt = this.old.spoilt, this.new.spoilt
        assert min(spoilt) > 0
        for answers, first in zip(came(), spoilt, strict=True):
            assert answers.failed == 0
            assert answers.begun == answers.done
            # a slow machine may let more of them wait for too long
            assert answers.failed_first == first if not seconds else answers.failed_first >= first
        this.looked_at()
        assert rollout(this)["outcome"] is None

        spoil(this, 0)
        this.new.status = 500
        eventually(lambda: ended(this, "rolled_back"))


def test_an_outage_of_both_is_counted_on_both_and_nobody_is_ejected_for_it(envoy_edge: Edge) -> None:
    with judging(envoy_edge, MANY) as this:
        came, before = this.came(), served(this)
        this.old.status = this.new.status = 503
        ask_at_once(this, 60)
        failed = served(this)[0] - before[0], served(this)[1] - before[1]
        this.old.status = this.new.status = 200
        assert ask_at_once(this, 100) == {200}
        eventually(lambda: sum(answers.done for answers in came()) == 160)
        assert tuple(answers.failed for answers in came()) == failed
        assert tuple(answers.again for answers in came()) == (0, 0), "each answered for itself all the time"
        this.looked_at()
        assert rollout(this)["outcome"] is None


def test_who_cannot_be_reached_was_sent_each_request_once_and_failed_first(envoy_edge: Edge) -> None:
    with judging(envoy_edge, MANY) as this:
        came = this.came()
        this.new.close()
        assert ask_at_once(this, 20) == {200}
        eventually(lambda: sum(answers.done for answers in came()) == 20)
        new = came()[1]
        assert new.begun == new.done == new.again > 0
        assert (new.failed, new.again_failed) == (0, 0)
        eventually(lambda: ended(this, "rolled_back"))
