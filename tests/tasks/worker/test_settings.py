"""What workers and beat read from the environment, and what Celery and beat are told to do."""

from pathlib import Path

import pytest
from celery import Celery
from kombu.entity import Exchange

from domain.handlers.dispatch import HANDLERS
from domain.installation.settings import ports_between
from domain.model.lifecycle_events import ROUTE_CADENCES, RouteLifecycleType
from domain.text.errors import InvalidInputError
from runtime.process.port_allocation import MOST_PORTS
from tasks.app import TASK_MODULES, app
from tasks.messaging.queues import DO_IF_NEEDED_TASK, DO_ROUTE_TASK, DO_TASK, celery_settings
from tasks.task_settings import TaskSettings
from tasks.worker.beat import beat_schedule
from tests.support.rows.deployments import NOBODY

ENVIRONMENT = {"REDIS_URL": NOBODY}


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:6379",
        "http://:secret@localhost:6379/0",
        "redis://:secret@[::1/0",
        "redis://:secret@localhost:port/0",
        "redis://:secret@localhost:99999/0",
    ],
)
def test_a_redis_url_that_cannot_be_used_is_named_without_its_password(url: str) -> None:
    with pytest.raises(InvalidInputError, match="REDIS_URL") as refused:
        TaskSettings.from_environment({"REDIS_URL": url})
    assert "secret" not in str(refused.value)
    assert "redis://:password@host:port/0" in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("redis://h/0", "redis://h/0"),
        ("rediss://h/0", "rediss://h/0?ssl_cert_reqs=required"),
        ("rediss://h/0?ssl_ca_certs=/ca.pem", "rediss://h/0?ssl_ca_certs=/ca.pem&ssl_cert_reqs=required"),
        ("rediss://h/0?ssl_cert_reqs=none", "rediss://h/0?ssl_cert_reqs=none"),
    ],
)
def test_with_tls_a_certificate_is_required_unless_the_url_says_otherwise(given: str, used: str) -> None:
    assert TaskSettings.from_environment({"REDIS_URL": given}).redis_url == used


def test_a_file_of_keys_has_an_absolute_path() -> None:
    assert TaskSettings.from_environment(ENVIRONMENT).command_keys is None
    asked = TaskSettings.from_environment({**ENVIRONMENT, "ROLLWAY_COMMAND_KEYS": "/etc/rollway/keys"})
    assert asked.command_keys == Path("/etc/rollway/keys")
    with pytest.raises(InvalidInputError, match="ROLLWAY_COMMAND_KEYS must be the absolute path of a file of keys"):
        TaskSettings.from_environment({**ENVIRONMENT, "ROLLWAY_COMMAND_KEYS": "keys"})


@pytest.mark.parametrize("slots", ["0", "-1", "65", "two", "1.5", "²"])
def test_a_number_of_slots_that_makes_no_sense_is_named(slots: str) -> None:
    with pytest.raises(InvalidInputError, match="ROLLWAY_SLOTS must be a number from 1 to 64"):
        TaskSettings.from_environment({**ENVIRONMENT, "ROLLWAY_SLOTS": slots})


def test_what_is_not_set_has_a_default() -> None:
    plain = TaskSettings.from_environment({**ENVIRONMENT, "ROLLWAY_SLOTS": "", "ROLLWAY_HOME": ""})
    assert (plain.slots, plain.home) == (1, Path(".rollway").absolute())
    asked = TaskSettings.from_environment({**ENVIRONMENT, "ROLLWAY_SLOTS": "64", "ROLLWAY_HOME": "/srv/rollway"})
    assert (asked.slots, asked.home) == (64, Path("/srv/rollway"))


@pytest.mark.parametrize("host", ["external", "-a", "a b", "a" * 64, "ä"])
def test_a_host_name_that_cannot_name_a_queue_is_refused(host: str) -> None:
    with pytest.raises(InvalidInputError, match="ROLLWAY_HOST must be letters"):
        TaskSettings.from_environment({**ENVIRONMENT, "ROLLWAY_HOST": host})


@pytest.mark.parametrize("name", ["ROLLWAY_HOST_SILENCE_SECONDS", "ROLLWAY_DRAIN_DEADLINE_SECONDS"])
@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "nan", "86401"])
def test_a_time_that_makes_no_sense_is_named(name: str, seconds: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{name} must be a number of seconds from 1"):
        TaskSettings.from_environment({**ENVIRONMENT, name: seconds})


def test_what_replicas_get_and_reach_is_named_and_by_default_nothing() -> None:
    plain = TaskSettings.from_environment(ENVIRONMENT)
    assert (plain.replica_env, plain.replica_users, plain.docker_volumes, plain.docker_host_network) == (
        (),
        (),
        (),
        False,
    )
    given = {
        "ROLLWAY_REPLICA_ENV": "HF_HOME, AWS_*,,",
        "ROLLWAY_DOCKER_VOLUMES": "/srv",
        "ROLLWAY_DOCKER_HOST_NETWORK": "on",
    }
    asked = TaskSettings.from_environment({**ENVIRONMENT, **given})
    assert (asked.replica_env, asked.docker_volumes, asked.docker_host_network) == (
        ("HF_HOME", "AWS_*"),
        ("/srv",),
        True,
    )
    with pytest.raises(InvalidInputError, match="ROLLWAY_DOCKER_HOST_NETWORK must be on or off, not 'perhaps'"):
        TaskSettings.from_environment({**ENVIRONMENT, "ROLLWAY_DOCKER_HOST_NETWORK": "perhaps"})


def test_what_replicas_may_have_as_secrets_is_named_and_by_default_nothing() -> None:
    plain = TaskSettings.from_environment(ENVIRONMENT)
    assert (plain.secrets_allow, plain.secrets_env_file) == ((), None)
    allow = "file:/run/secrets, command:/usr/bin/vault read"
    asked = TaskSettings.from_environment(
        {**ENVIRONMENT, "ROLLWAY_SECRETS_ALLOW": allow, "ROLLWAY_SECRETS_ENV_FILE": "/etc/rollway/secrets"}
    )
    assert asked.secrets_allow == ("file:/run/secrets", "command:/usr/bin/vault read")
    assert asked.secrets_env_file == Path("/etc/rollway/secrets")
    by_deployment = "file:/run/secrets/{deployment}/,command:/usr/local/bin/secret-of {deployment}"
    divided = TaskSettings.from_environment(
        {**ENVIRONMENT, "ROLLWAY_SECRETS_ALLOW": by_deployment, "ROLLWAY_SECRETS_ENV_FILE": "/etc/s/{deployment}"}
    )
    assert divided.secrets_allow[0] == "file:/run/secrets/{deployment}"
    assert divided.secrets_env_file == Path("/etc/s/{deployment}")
    with pytest.raises(InvalidInputError, match="ROLLWAY_SECRETS_ENV_FILE must be the absolute path"):
        TaskSettings.from_environment({**ENVIRONMENT, "ROLLWAY_SECRETS_ENV_FILE": "/etc/s/{name}"})
    for wrong in ("/run/secrets", "file:secrets", "file:/", "env:DB", "command:vault", "file:/run/{name}", "file:/{"):
        with pytest.raises(InvalidInputError, match="ROLLWAY_SECRETS_ALLOW must be folders and commands, separated"):
            TaskSettings.from_environment({**ENVIRONMENT, "ROLLWAY_SECRETS_ALLOW": wrong})


def test_a_host_has_the_labels_that_its_workers_are_given() -> None:
    assert TaskSettings.from_environment(ENVIRONMENT).host_labels == {}
    labelled = TaskSettings.from_environment({**ENVIRONMENT, "ROLLWAY_HOST_LABELS": "zone=a, disk=ssd"})
    assert labelled.host_labels == {"zone": "a", "disk": "ssd"}
    for wrong in ("zone", "zone=a,zone=b", "host=gpu-1"):
        with pytest.raises(InvalidInputError, match=f"ROLLWAY_HOST_LABELS must be labels, .* not '{wrong}'"):
            TaskSettings.from_environment({**ENVIRONMENT, "ROLLWAY_HOST_LABELS": wrong})


def test_replicas_of_an_installation_have_a_range_of_ports() -> None:
    assert TaskSettings.from_environment(ENVIRONMENT).replica_ports == "20000-29999"
    asked = TaskSettings.from_environment({**ENVIRONMENT, "ROLLWAY_REPLICA_PORTS": "1024-32767"})
    assert ports_between(asked.replica_ports) == range(1024, 32768)
    assert len(ports_between("20000-20299")) > MOST_PORTS, "one process holds them all and is not ended"
    for wrong in ("20000", "29999-20000", "1023-2000", "20000-32768", "20000-20298", "a-b"):
        with pytest.raises(InvalidInputError, match="ROLLWAY_REPLICA_PORTS must be the first and the last of a range"):
            TaskSettings.from_environment({**ENVIRONMENT, "ROLLWAY_REPLICA_PORTS": wrong})


def test_each_queue_has_an_exchange_and_a_key_of_its_own() -> None:
    queues = celery_settings(TaskSettings(redis_url=NOBODY, host="gpu-1"))["task_queues"]
    assert [queue.name for queue in queues] == ["lifecycle", "routes", "commands", "host.gpu-1"]
    for queue in queues:
        assert (queue.exchange, queue.routing_key) == (Exchange(queue.name), queue.name)  # type: ignore[no-untyped-call]
    assert celery_settings(TaskSettings(redis_url=NOBODY))["task_create_missing_queues"] is False


def test_a_command_without_a_queue_goes_to_the_one_of_commands() -> None:
    sender = Celery(set_as_current=False)
    sender.conf.update(celery_settings(TaskSettings(redis_url=NOBODY)))
    router = sender.amqp.Router()
    sent = {name: router.route({}, name)["queue"].name for name in ("rollway.scale", "rollway.get_rollout", DO_TASK)}
    assert sent == {"rollway.scale": "commands", "rollway.get_rollout": "commands", DO_TASK: "lifecycle"}
    assert router.route({"queue": "routes"}, "rollway.scale")["queue"].name == "routes"


def test_nothing_but_json_is_spoken_and_nothing_is_kept_unacknowledged() -> None:
    settings = celery_settings(TaskSettings(redis_url=NOBODY))
    assert settings["accept_content"] == [settings["task_serializer"]] == [settings["result_serializer"]] == ["json"]
    assert (settings["task_acks_late"], settings["worker_disable_prefetch"]) == (False, True)
    assert (settings["task_ignore_result"], settings["broker_connection_max_retries"]) == (True, None)


def test_every_handler_ticks_as_it_declares() -> None:
    schedule = beat_schedule()
    for event, handler in HANDLERS.items():
        key = {"lifecycle_type": event.lifecycle_type, "sub_step": event.sub_step}
        long = schedule[str(event)]
        assert (long["task"], long["schedule"]) == (DO_TASK, handler.cadence.long)
        assert long["kwargs"] == {**key, "interval": handler.cadence.long}
        short = schedule.get(f"{event} if needed")
        assert (short is None) == (handler.cadence.short is None)
        if short is not None:
            assert (short["task"], short["schedule"]) == (DO_IF_NEEDED_TASK, handler.cadence.short)
            assert short["kwargs"] == {**key, "interval": handler.cadence.short}
    sweep = schedule["routes/sweep"]
    assert (sweep["task"], sweep["schedule"]) == (DO_ROUTE_TASK, ROUTE_CADENCES[RouteLifecycleType.SWEEP])


def test_every_tick_names_its_interval_its_queue_and_a_task_that_exists(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)  # the app of this process keeps what it reads first, for later tests
    for module in TASK_MODULES:
        app.loader.import_task_module(module)
    queues = {queue.name for queue in celery_settings(TaskSettings(redis_url=NOBODY))["task_queues"]}
    for name, entry in beat_schedule().items():
        assert entry["options"].keys() == {"queue", "ignore_result"}, f"{name} must not expire by a worker's clock"
        assert entry["options"]["ignore_result"], f"nobody reads what {name} answers"
        assert entry["options"]["queue"] in queues
        assert entry["task"] in app.tasks
        assert entry["kwargs"]["interval"] == entry["schedule"]
