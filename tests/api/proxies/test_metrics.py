"""What Prometheus scrapes of the server for proxies: its own numbers are open, those of the fleet need a token."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from sqlalchemy import Engine

from domain.traffic.nodes import token_of
from tasks.task_settings import KEY_PREFIX
from tests.support.people.asking import KEY
from tests.support.proxies import plain_http
from tests.support.rows.deployments import ask, make_deployment, read
from tests.support.stack.server_process import Process
from tests.support.stack.waiting import eventually

USER = ("prometheus", token_of("prometheus", KEY))


@pytest.mark.parametrize(("user", "code"), [(None, 401), (("prometheus", "wrong"), 403), (("other", USER[1]), 403)])
def test_the_fleet_is_told_to_who_shows_a_token_alone(
    api: Process, user: tuple[str, str] | None, code: int, engine: Engine
) -> None:
    make_deployment(engine, "■■", name="secret-project")
    answer = plain_http.get(f"{api.url}/metrics/fleet", auth=user)
    assert (answer.status_code, "secret-project" in answer.text) == (code, False)
    eventually(lambda: "secret-project" in plain_http.get(f"{api.url}/metrics/fleet", auth=USER).text)
    assert "secret-project" not in plain_http.get(f"{api.url}/metrics").text


def test_however_many_ask_the_fleet_is_read_once_a_second_at_most(api: Process, engine: Engine) -> None:
    def reads() -> int:
        scans = "SELECT seq_scan + coalesce(idx_scan, 0) AS n FROM pg_stat_user_tables WHERE relname = 'rollout_counts'"
        return int(read(engine, scans)[0]["n"])

    before = reads()
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: plain_http.get(f"{api.url}/metrics/fleet", auth=USER), range(100)))
    seconds = max(answer.elapsed.total_seconds() for answer in answers) * 100 / 8
    assert {answer.status_code for answer in answers} == {200}
    eventually(lambda: reads() > before)
    assert reads() - before <= 2 + seconds


def test_what_lies_in_the_queue_of_a_subscription_is_told(api: Process, engine: Engine, redis_url: str) -> None:
    ask(engine, "set_subscription", subscription="ci", celery_task="shop.deployed", queue="shop")
    with redis.Redis.from_url(redis_url) as client:
        client.rpush(f"{KEY_PREFIX}shop", "one", "two")
    told = 'rollway_subscription_queue_length{queue_name="shop"} 2.0'
    eventually(lambda: told in plain_http.get(f"{api.url}/metrics/fleet", auth=USER).text)
