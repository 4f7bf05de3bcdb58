"""The parts of a worker: runtimes, lock slots, probers and the coordinator, each put together at its first use."""

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache

import psycopg
import structlog
from celery.signals import worker_ready, worker_shutting_down
from celery.worker.consumer import Consumer

from db.connection.transactions import engine
from db.unreachable import is_unreachable
from domain.devices.needs import AUTO, Capacity, parse_resources
from domain.devices.others import knows_its_driver
from domain.handlers.dispatch import HANDLERS
from domain.installation.settings import ports_between
from domain.replicas.host_choice import SIGN_OF_LIFE_SECONDS
from runtime.docker.container import DockerPolicy, owner_of
from runtime.docker.docker_runtime import DockerRuntime
from runtime.external_runtime import ExternalRuntime
from runtime.host_secrets import HostSecrets
from runtime.probing.probes import Prober
from runtime.process.accounts import Accounts
from runtime.process.begin.environment import inherited
from runtime.process.begin.limits import ProcessLimits
from runtime.process.process_runtime import ProcessRuntime
from runtime.protocol import Runtime
from tasks.app import app
from tasks.cycle.coordinator import DeploymentCoordinator
from tasks.hosts.acme_orders import keep_certificates
from tasks.hosts.background import keep_logs_small, keep_looking
from tasks.hosts.heartbeat import Hearing, Heartbeat, keep_showing_signs_of_life
from tasks.hosts.host_rpc import (
    EXAMINATIONS,
    LOGS,
    Answer,
    ExaminationAnswers,
    HostAnswers,
    LogAnswers,
    answer_for_host,
)
from tasks.hosts.secret_checks import keep_answering
from tasks.messaging.credentials import webhook_targets
from tasks.messaging.queues import SHARED_QUEUES, queue
from tasks.outbox.courier import Courier
from tasks.redis.locks import Slots
from tasks.replicas.host_replicas import HostReplicas
from tasks.replicas.liveness import Silences
from tasks.replicas.probing import ProbePass
from tasks.replicas.strangers import Strangers
from tasks.replicas.warming import Warmer
from tasks.task_settings import KEY_PREFIX, log_limits, settings
from tasks.telemetry.metrics_server import show_metrics
from tasks.worker.connections import redis_client, waker
from tasks.worker.garbage import collect_seldom
from traffic.edge_settings import CertificateSettings

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Rest:
    """Whether this worker rests. It could only hold the slots that others wait for; its host's queue is its own."""

    consumer: Consumer
    slots: Slots
    _is_resting: bool = False

    def note_postgres(self, error: psycopg.Error | None) -> None:
        """Rest, or take up work again, by what the last try to reach Postgres raised; None when it went through.

        To be called from any thread: the worker's own loop changes what it reads.
        """
        is_reached = error is None or not is_unreachable(error)
        if is_reached != self._is_resting:
            return
        self._is_resting = not is_reached
        _log.warning("Postgres is reached again" if is_reached else "rests until it reaches Postgres")
        if not is_reached:
            self.slots.let_go()
        self.consumer.call_soon(self._follow)

    def _follow(self) -> None:
        """Read what is to be read now. Calls that piled up while Redis was away come in no order, and all do the same.

        First it is chosen, which needs no Redis: where that breaks off, the next connection reads what is chosen.
        """
        queues = self.consumer.app.amqp.queues
        if self._is_resting:
            choose, change = queues.deselect, self.consumer.cancel_task_queue
        else:
            choose, change = (lambda name: queues.select_add(queues[name])), self.consumer.add_task_queue
        for follow in (choose, change):
            for name in SHARED_QUEUES:
                follow(name)


stopping = threading.Event()
"""Set when the worker was asked to end: its tasks finish the chunk in hand and claim no other."""


@worker_shutting_down.connect
def _stop(**_: object) -> None:
    stopping.set()


@worker_ready.connect
def _collect_seldom(**_: object) -> None:
    collect_seldom()


@worker_ready.connect
def _show_metrics(sender: Consumer, **_: object) -> None:
    show_metrics(str(sender.hostname)).up()


@worker_ready.connect
def _show_signs_of_life(sender: Consumer, **_: object) -> None:
    environment, rest, ring = settings(), Rest(sender, slots()), keep_answering(engine(), secrets(), stopping).ring
    resources = _resources(environment.host_resources)
    giver = Heartbeat(
        engine(),
        environment.host,
        environment.host_address,
        environment.replica_user,
        after_try=rest.note_postgres,
        webhooks=webhook_targets,
        secrets_for_all=secrets().for_all,
        labels=environment.host_labels,
        resources=resources,
        memory_in_use=_memory_in_use(resources),
        when_secrets_are_wanted=ring,
        is_deaf=hearing().is_deaf,
    )
    keep_showing_signs_of_life(giver, stopping)


def _resources(text: str) -> Capacity:
    """The devices and amounts of this machine for replicas; the driver reports those that are `auto`."""
    if AUTO not in text:
        return parse_resources(text)
    from runtime.machine.gpus import gpus_by_kind  # noqa: PLC0415  (few machines have a driver to ask)

    return parse_resources(text, gpus_by_kind())


def _memory_in_use(resources: Capacity) -> Callable[[], Capacity]:
    """Reads the memory in use on the GPUs of this machine; empty if they have numbers for names."""
    if not knows_its_driver(resources):
        return dict
    from runtime.machine.gpus import GpuMemory  # noqa: PLC0415  (as above)

    memory = GpuMemory(resources)
    keep_looking(
        memory.look, SIGN_OF_LIFE_SECONDS, stopping, name="memory of GPUs", trouble="the memory of GPUs is not known"
    )
    return lambda: memory.in_use


@worker_ready.connect
def _keep_certificates(**_: object) -> None:
    keep_certificates(engine(), secrets(), CertificateSettings.from_environment(os.environ), stopping)


@worker_ready.connect
def _answer_for_host(**_: object) -> None:
    answers: Mapping[str, Answer] = {LOGS: LogAnswers(settings().home), EXAMINATIONS: ExaminationAnswers(runtimes())}
    answer_for_host(HostAnswers(redis_client(), settings().host, answers, hearing().note), stopping)


@worker_ready.connect
def _keep_logs_small(**_: object) -> None:
    keep_logs_small(settings().home, log_limits(), stopping)


@cache
def hearing() -> Hearing:
    return Hearing()


@cache
def slots() -> Slots:
    return Slots(redis_client(), settings().slots, settings().lock_seconds, waker().send)


@cache
def secrets() -> HostSecrets:
    environment = inherited(settings().replica_env)
    return HostSecrets(settings().host, settings().secrets_allow, settings().secrets_env_file, environment)


@cache
def runtimes() -> dict[str, Runtime]:
    """The runtimes, by the name that a revision's spec uses."""
    return {
        "process": ProcessRuntime(
            settings().home,
            ports_between(settings().replica_ports),
            settings().host_address,
            also=settings().replica_env,
            accounts=Accounts(settings().replica_user, settings().replica_users),
            limits=ProcessLimits(settings().replica_processes, settings().replica_files, log_limits()),
        ),
        "docker": DockerRuntime(
            owner_of(settings().host, settings().home),
            address=settings().host_address,
            policy=DockerPolicy(settings().docker_volumes, settings().docker_host_network),
        ),
        "external": ExternalRuntime(_send_to_other_system, allow=settings().external_allow, targets=webhook_targets),
    }


def _send_to_other_system(task: str, payload: Mapping[str, object], to: str, expires: float | None = None) -> None:
    """Send a task to another system, whose workers read a queue of their own on this broker."""
    app.send_task(task, kwargs={"payload": payload}, queue=queue(to), expires=expires, ignore_result=True)


@cache
def replicas_of(host: str) -> HostReplicas:
    """Return the work for the replicas of its own host, or of EXTERNAL."""
    return HostReplicas(engine(), runtimes(), waker(), host, _drain_deadline(), secrets())


def _drain_deadline() -> timedelta:
    return timedelta(seconds=settings().drain_deadline_seconds)


@cache
def _prober_of(host: str) -> Prober:
    """The prober for all passes over a host: a later pass judges what an earlier one sent."""
    return Prober(f"probes of {host}")


@cache
def _warmer_of(host: str) -> Warmer:
    return Warmer(engine(), redis_client(), f"warm-ups of {host}")


@cache
def _silences() -> Silences:
    return Silences()


@cache
def _strangers() -> Strangers:
    return Strangers()


def probe_pass(host: str) -> ProbePass:
    """A new pass over the running replicas of a host, or of EXTERNAL."""
    parts = engine(), runtimes(), waker(), redis_client(), host, _prober_of(host), _silences()
    return ProbePass(*parts, _drain_deadline(), _strangers(), _warmer_of(host))


@cache
def courier() -> Courier:
    """Sends events to subscribers."""
    return Courier(engine(), webhook_targets, _send_to_other_system, _queued, settings().webhook_seconds, stopping)


def _queued(name: str) -> int:
    return redis_client().llen(f"{KEY_PREFIX}{name}")


@cache
def coordinator() -> DeploymentCoordinator:
    """The generic path of every deployment event, over all handlers."""
    return DeploymentCoordinator(
        engine=engine(),
        slots=slots(),
        waker=waker(),
        handlers=HANDLERS,
        chunk=settings().chunk,
        work_seconds=settings().work_seconds,
        stopping=stopping,
    )
