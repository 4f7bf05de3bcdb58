"""What a real Envoy has counted by revision, read by a real api process, as rows of a rollout."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

import httpx

from domain.judge.evidence import LEAST_FOR_A_PERCENTILE
from domain.judge.judge import Found, Judged, judge
from domain.judge.judge_spec import Judge, Slow
from domain.model.answer_counts import Answers
from domain.model.canary import Evidence
from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge, api_process
from tests.support.rows.deployments import write
from tests.support.stack.server_process import running
from tests.support.stack.waiting import eventually
from tests.support.worlds.folding import folded
from tests.support.worlds.rolling import Rolling, rolling, served


def test_each_answer_is_counted_once_by_revision_with_what_failed_and_what_was_cut(envoy_edge: Edge) -> None:
    with rolling(envoy_edge) as this:
        came, (old, new) = this.came(), served(this)
        this.new.status = 500
        this.ask(40)
        done = served(this)[0] - old, served(this)[1] - new
        assert sum(done) == 40
        eventually(lambda: tuple(answers.done for answers in came()) == done)
        assert tuple(answers.failed for answers in came()) == (0, done[1])
        assert tuple(answers.cut for answers in came()) == (0, 0)
        eventually(lambda: tuple(sum(answers.first_byte) for answers in came()) == done)

        this.new.status = 404
        came, (old, new) = this.came(), served(this)
        this.ask(20)
        done = served(this)[0] - old, served(this)[1] - new
        eventually(lambda: tuple(answers.done for answers in came()) == done)
        assert tuple((answers.failed, answers.refused) for answers in came()) == ((0, 0), (0, done[1]))

        this.new.status = 302
        came, (old, new) = this.came(), served(this)
        this.ask(20)
        done = served(this)[0] - old, served(this)[1] - new
        eventually(lambda: tuple(answers.done for answers in came()) == done)
        assert tuple((answers.failed, answers.redirected) for answers in came()) == ((0, 0), (0, done[1]))

        this.new.status, this.new.cuts = 200, True
        came, (_, new) = this.came(), served(this)
        while served(this)[1] < new + 3:
            try:
                this.ask()
            except httpx.RemoteProtocolError:
                continue
        eventually(lambda: came()[1] and came()[1].cut == 3)
        assert (came()[0].failed, came()[1].failed, came()[1].done) == (0, 3, 3)


def test_a_request_counts_when_it_is_sent_and_as_failed_when_nobody_waits_for_its_answer_any_more(
    envoy_edge: Edge,
) -> None:
    with rolling(envoy_edge) as this, ThreadPoolExecutor(8) as callers:
        came, (_, new) = this.came(), served(this)
        this.new.seconds, this.new.hangs_up = 6.0, True

        def give_up() -> None:
            with suppress(httpx.ReadTimeout):
                plain_http.get(f"{envoy_edge.envoy.url}/{this.made.name}/", timeout=4)

        given_up = [callers.submit(give_up) for _ in range(8)]
        eventually(lambda: came()[1].begun == served(this)[1] - new > came()[1].done == 0)
        wait(given_up)
        eventually(lambda: came()[1].failed == came()[1].done == came()[1].begun)
        assert (came()[0].failed, came()[0].begun) == (0, came()[0].done)


NOTHING = Answers()
SLOW = Judge(errors=None, refused=None, redirected=None, slow=Slow(warm_up="0s"), chance_of_false_abort="0.1%")


def judged(this: Rolling) -> Judged:
    """What a judge of slow answers finds of all intervals."""
    found, old, new = this.intervals(), this.made.v1, this.made.v2
    evidence = [Evidence(seen.at, seen.of.get(new, NOTHING), seen.of.get(old, NOTHING), 1, 1) for seen in found]
    return judge(SLOW, folded(SLOW, evidence, found[0].at), found[0].at, found[-1].at)


def test_a_stream_is_as_fast_as_its_first_byte_to_the_judge_too(envoy_edge: Edge) -> None:
    with rolling(envoy_edge) as this, ThreadPoolExecutor(30) as callers:

        def ask_until(condition: Callable[[], bool]) -> None:
            def asked() -> bool:
                list(callers.map(lambda _: this.ask(), range(30)))
                return condition()

            eventually(asked)

        came = this.came()
        this.old.seconds, this.new.seconds = 0.2, 0.05
        ask_until(lambda: sum(came()[0].first_byte) >= LEAST_FOR_A_PERCENTILE)
        streams, this.new.trickles = came()[1].done, 0.8
        ask_until(lambda: came()[1].done >= streams + 20)
        assert judged(this).finding is not Found.HARM, "its end comes late, and its first byte does not"
        this.new.seconds, this.new.trickles = 2.0, 0.0
        ask_until(lambda: judged(this).finding is Found.HARM)
        # which of the two it is, and which ms, depends on how many answers are still under way
        slow_or_waiting = r"canary ([\d.]+ % \(\d+ of \d+\)|at least \d+ waited for longer than (2\d\d|300) ms), "
        assert re.search(slow_or_waiting, judged(this).sentence)


def test_a_proxy_that_begins_anew_counts_anew_and_one_that_tells_nothing_is_named(envoy_edge: Edge) -> None:
    with rolling(envoy_edge) as this:
        this.ask(20)
        came = this.came()
        envoy_edge.envoy.end(kill=True)
        envoy_edge.envoy.start()
        eventually(lambda: this.ask()[0].status_code == 200)
        asked = 1 + len(this.ask(9))
        eventually(lambda: sum(answers.done for answers in came()) >= asked)
        this.looked_at()
        assert asked <= sum(answers.done for answers in came()) < asked + 5, "only what was answered since it began"
        assert all(answers.is_possible for answers in came())

        write(
            envoy_edge.routes.engine,
            "INSERT INTO proxies (node_id, kind, silence_seconds) VALUES ('mute', 'envoy', 60)",
        )
        eventually(lambda: (this.intervals()[-1].reporting, this.intervals()[-1].live) == (1, 2))
        write(envoy_edge.routes.engine, "DELETE FROM proxies WHERE node_id = 'mute'")


def test_of_two_servers_each_counts_what_the_other_has_not_whichever_is_killed(
    envoy_edge: Edge, redis_url: str, module_database: str, tmp_path: Path
) -> None:
    with rolling(envoy_edge) as this:
        came, second = this.came(), api_process(module_database, redis_url, tmp_path)
        with running(second):
            this.ask(50)
            envoy_edge.api.end(kill=True)
            this.ask(50)
            eventually(lambda: sum(answers.done for answers in came()) == 100)
            envoy_edge.api.start()
            this.ask(50)
        eventually(lambda: sum(answers.done for answers in came()) == 150)
        this.looked_at()
        assert sum(answers.done for answers in came()) == 150
