"""Replicas of another system, asked for at a real webhook."""

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from uuid import uuid4

import httpx
import pytest
from pydantic import ValidationError

from cli.apply import read_file
from domain.revisions.revision import RevisionSpec
from domain.revisions.runtime_spec import ExternalSpec
from runtime.external_runtime import ExternalRuntime, post, why_not_reached
from runtime.protocol import Replica, ReplicaRequest, ReplicaStartError, RuntimeUnavailableError
from tests.support.people.webhooks import Webhook, asked_at, document, serving
from tests.support.workers.runtimes import ROOT


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with serving() as hook:
        yield hook


def no_task(name: str, _payload: Mapping[str, object], _queue: str) -> None:
    raise AssertionError(f"{name} was sent")


@pytest.fixture
def runtime() -> ExternalRuntime:
    return ExternalRuntime(no_task, timeout_seconds=60)


@pytest.fixture
def hasty() -> ExternalRuntime:
    """It gives up what has not been answered within half a second."""
    return ExternalRuntime(no_task, timeout_seconds=0.5)


def test_start_stop_and_kill_are_asked_with_one_request_id_each(runtime: ExternalRuntime, webhook: Webhook) -> None:
    request = asked_at({"webhook": webhook.url})
    replica = runtime.start(request)
    assert replica == Replica(request.route_id, f"external:{request.route_id}", None, running=True)
    assert runtime.start(request) == replica
    assert runtime.find(request.route_id) == replica
    runtime.terminate(request.route_id, request)
    assert runtime.find(request.route_id) == replica, "asked to stop is not stopped"
    runtime.kill(request.route_id, request)
    actions = ["start", "start", "stop", "kill"]
    assert webhook.asked == [document(request, action) for action in actions]
    assert webhook.keys == [f"{request.route_id}-{action}" for action in actions]


def test_a_replica_that_was_killed_here_is_gone_and_the_others_are_not(
    runtime: ExternalRuntime, webhook: Webhook
) -> None:
    killed, other = (asked_at({"webhook": webhook.url}) for _ in range(2))
    runtime.kill(killed.route_id, killed)
    runtime.kill(killed.route_id, killed)
    runtime.forget(killed.route_id)
    assert runtime.find(killed.route_id) is None
    assert runtime.find(other.route_id)
    assert list(runtime.everyone()) == []
    assert runtime.log_tail(killed.route_id, 5) == ""


@pytest.mark.parametrize(
    ("status", "text", "said"),
    [
        (422, "no such model: llama-9\nTraceback", r"answered 422 no such model: llama-9$"),
        (404, "", r"answered 404$"),
        (307, "", r"answered 307$"),
    ],
)
def test_a_refusal_fails_the_route_with_status_and_first_line(
    runtime: ExternalRuntime, webhook: Webhook, status: int, text: str, said: str
) -> None:
    webhook.status, webhook.text = status, text
    with pytest.raises(ReplicaStartError, match=said) as refused:
        runtime.start(asked_at({"webhook": webhook.url}))
    assert "secret" not in str(refused.value)
    assert "/replicas" in str(refused.value)


@pytest.mark.parametrize("status", [500, 503, 429, 408])
def test_trouble_over_there_is_no_refusal(runtime: ExternalRuntime, webhook: Webhook, status: int) -> None:
    webhook.status = status
    request = asked_at({"webhook": webhook.url})
    for ask in (runtime.terminate, runtime.kill):
        with pytest.raises(RuntimeUnavailableError, match=f"answered {status}"):
            ask(request.route_id, request)
    with pytest.raises(RuntimeUnavailableError, match=f"answered {status}") as away:
        runtime.start(request)
    assert "secret" not in str(away.value)
    assert runtime.find(request.route_id), "not killed: it was not even asked"


def test_a_webhook_that_cannot_be_reached_or_does_not_answer_is_asked_again_later(
    runtime: ExternalRuntime, hasty: ExternalRuntime
) -> None:
    with serving() as webhook:
        request = asked_at({"webhook": webhook.url})
        webhook.answers.clear()
        with pytest.raises(RuntimeUnavailableError, match=r"has not answered within 0\.5 s"):
            hasty.start(request)
        webhook.answers.set()
        assert runtime.start(request).running
    with pytest.raises(RuntimeUnavailableError, match="cannot be reached: nothing listens there") as away:
        runtime.start(request)
    assert "secret" not in str(away.value)


def test_a_webhook_that_is_none_or_speaks_no_tls_is_told_as_that() -> None:
    with serving() as webhook:
        plain = webhook.url.replace("http:", "https:")
        for url, why in (
            ("http://nosuch.invalid/", "no machine of its name is known"),
            (plain, "it does not speak TLS"),
        ):
            with pytest.raises(httpx.ConnectError) as away:
                post(url, b"{}", {}, 10)
            assert why_not_reached(away.value).startswith(why)


def test_an_answer_that_no_text_can_hold_is_told_as_far_as_it_can_be(
    runtime: ExternalRuntime, webhook: Webhook
) -> None:
    webhook.status, webhook.text = 400, "no\0such \x1b[31mmodel\nand more"
    with pytest.raises(ReplicaStartError, match=re.escape("answered 400 no\ufffdsuch \ufffd[31mmodel")):
        runtime.start(asked_at({"webhook": webhook.url}))


def test_a_webhook_that_answers_a_byte_at_a_time_is_given_up_after_a_total_time(
    hasty: ExternalRuntime, webhook: Webhook
) -> None:
    webhook.drip_seconds = 0.2
    before = time.monotonic()
    with pytest.raises(RuntimeUnavailableError, match=r"has not answered within 0\.5 s"):
        hasty.start(asked_at({"webhook": webhook.url}))
    assert time.monotonic() - before < 100, "its whole answer takes half an hour"


def test_a_refused_stop_is_no_error_and_a_refused_kill_ends_the_wait(
    runtime: ExternalRuntime, webhook: Webhook
) -> None:
    webhook.status = 404
    request = asked_at({"webhook": webhook.url})
    runtime.terminate(request.route_id, request)
    assert runtime.find(request.route_id)
    runtime.kill(request.route_id, request)
    assert runtime.find(request.route_id) is None


def test_a_system_that_never_answers_a_kill_cannot_hold_a_drain_for_ever() -> None:
    request = asked_at({"webhook": "http://127.0.0.1:1/replicas"})
    runtime = ExternalRuntime(no_task, patience_seconds=0.3)
    before = time.monotonic()
    while runtime.find(request.route_id):
        try:
            runtime.kill(request.route_id, request)
        except RuntimeUnavailableError:
            assert time.monotonic() - before < 30
            time.sleep(0.02)
    assert time.monotonic() - before >= 0.3


def test_the_example_is_asked_at_its_webhook(runtime: ExternalRuntime, webhook: Webhook) -> None:
    (example,) = read_file(str(ROOT / "examples" / "external.yaml"))
    assert example.revision
    assert example.revision.external
    content = example.revision.spec.model_dump() | {"external": {"webhook": webhook.url}}
    spec = RevisionSpec.model_validate(content)
    runtime.start(ReplicaRequest(uuid4(), example.deployment, "v1", spec))
    assert [asked["env"] for asked in webhook.asked] == [{"VERSION": "1"}]


def test_to_end_a_replica_its_request_is_needed(runtime: ExternalRuntime) -> None:
    with pytest.raises(ValueError, match=r"to stop the external replica .* its request is needed"):
        runtime.terminate(uuid4())


def test_what_a_scoped_token_added_is_asked_for_only_where_that_is_allowed(webhook: Webhook) -> None:
    request = replace(asked_at({"webhook": webhook.url}), is_walled=True)
    server = webhook.url.partition("//")[2].partition("/")[0]
    near = (f"https://{server}/", f"http://{server}/other", f"http://{server}.example.com/")
    for allow in ((), ("https://gpus.example.com/", *near)):
        refusing = ExternalRuntime(no_task, timeout_seconds=60, allow=allow)
        with pytest.raises(ReplicaStartError, match="ROLLWAY_EXTERNAL_ALLOW does not name"):
            refusing.start(request)
        refusing.kill(request.route_id, request)
    assert webhook.asked == [], "neither to start nor to end it"
    ExternalRuntime(no_task, timeout_seconds=60, allow=(f"http://{server}/",)).start(request)
    assert [asked["action"] for asked in webhook.asked] == ["start"]


def test_a_scoped_token_fills_no_queue_that_is_not_named() -> None:
    sent = list[str]()
    request = replace(asked_at({"task": "gpus.replica", "queue": "gpus"}), is_walled=True)
    with pytest.raises(ReplicaStartError, match="does not name queue:gpus"):
        ExternalRuntime(no_task).start(request)
    ExternalRuntime(lambda task, _payload, queue: sent.append(f"{task} {queue}"), allow=("queue:gpus",)).start(request)
    assert sent == ["gpus.replica gpus"]


@pytest.mark.parametrize("own", [{"queue": "commands"}, {"queue": "host.a"}, {"task": "rollway.pause"}])
def test_rollways_own_tasks_and_queues_are_no_other_system(own: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="Rollway's own workers read it"):
        ExternalSpec.model_validate({"task": "gpus.replica", "queue": "gpus", **own})
