"""What a real Envoy has counted by revision, read by a real api process, as rows of a rollout."""

from pathlib import Path

import httpx

from domain.traffic.answers import FIRST_BYTE_MS
from tests.support.deployments import write
from tests.support.edge import Edge, api_process
from tests.support.rolling import rolling, served
from tests.support.waiting import eventually


def test_each_answer_is_counted_once_by_revision_with_what_failed_and_what_was_cut(edge: Edge) -> None:
    with rolling(edge) as this:
        came, (old, new) = this.came(), served(this)
        this.new.status = 500
        this.ask(40)
        done = served(this)[0] - old, served(this)[1] - new
        assert sum(done) == 40
        eventually(lambda: tuple(answers.done for answers in came()) == done)
        assert tuple(answers.failed for answers in came()) == (0, done[1])
        assert tuple(answers.cut for answers in came()) == (0, 0)
        eventually(lambda: tuple(sum(answers.first_byte) for answers in came()) == done)

        this.new.status, this.new.cuts = 200, True
        came, (_, new) = this.came(), served(this)
        while served(this)[1] < new + 3:
            try:
                this.ask()
            except httpx.RemoteProtocolError:
                continue
        eventually(lambda: came()[1] and came()[1].cut == 3)
        assert (came()[0].failed, came()[1].failed, came()[1].done) == (0, 3, 3)


def test_a_stream_is_as_fast_as_its_first_byte(edge: Edge) -> None:
    with rolling(edge) as this:
        came = this.came()
        this.old.seconds, this.old.trickles = 0.05, 1.5
        this.new.seconds = 1.0
        while not all(sum(answers.first_byte) for answers in came()):
            this.ask()
        old, new = came()
        assert old.done == sum(old.first_byte) > 0
        assert sum(old.first_byte[: FIRST_BYTE_MS.index(700) + 1]) == old.done
        assert sum(new.first_byte[: FIRST_BYTE_MS.index(700) + 1]) == 0


def test_a_proxy_that_begins_anew_counts_anew_and_one_that_tells_nothing_is_named(edge: Edge) -> None:
    with rolling(edge) as this:
        this.ask(20)
        came = this.came()
        edge.envoy.end(kill=True)
        edge.envoy.start()
        eventually(lambda: this.ask()[0].status_code == 200)
        asked = 1 + len(this.ask(9))
        eventually(lambda: sum(answers.done for answers in came()) >= asked)
        this.looked_at()
        assert asked <= sum(answers.done for answers in came()) < asked + 5, "only what was answered since it began"
        assert all(answers.is_possible for answers in came())

        write(edge.routes.engine, "INSERT INTO proxies (node_id, kind, silence_seconds) VALUES ('mute', 'envoy', 60)")
        eventually(lambda: (this.intervals()[-1].reporting, this.intervals()[-1].live) == (1, 2))
        write(edge.routes.engine, "DELETE FROM proxies WHERE node_id = 'mute'")


def test_of_two_servers_each_counts_what_the_other_has_not_whichever_is_killed(
    edge: Edge, redis_url: str, module_database: str, tmp_path: Path
) -> None:
    with rolling(edge) as this:
        came, second = this.came(), api_process(module_database, redis_url, tmp_path)
        second.start()
        try:
            this.ask(50)
            edge.api.end(kill=True)
            this.ask(50)
            eventually(lambda: sum(answers.done for answers in came()) == 100)
            edge.api.start()
            this.ask(50)
        finally:
            second.end(kill=True)
        eventually(lambda: sum(answers.done for answers in came()) == 150)
        this.looked_at()
        assert sum(answers.done for answers in came()) == 150
