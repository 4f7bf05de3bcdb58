"""What each section of a revision means where a field is left out, as the reference documents it."""

from typing import Any

import pytest
from pydantic import BaseModel

from domain.revisions.health_check import HealthCheck
from domain.revisions.revision import RevisionSpec
from domain.revisions.runtime_spec import (
    DEFAULT_CONTAINER_PORT,
    DEFAULT_PIDS,
    DockerResources,
    DockerSpec,
    ExternalSpec,
)
from domain.revisions.warm_start_spec import Park, ParkRequest, Prepare, WarmUp, WarmUpRequest

LIMITS = {"memory": None, "cpus": None, "pids": None, "gpus": None}


@pytest.mark.parametrize(
    ("section", "needed", "left_out"),
    [
        (
            RevisionSpec,
            {"command": ("serve",)},
            {
                "runtime": "process",
                "env": {},
                "working_directory": None,
                "user": None,
                "docker": None,
                "external": None,
                "hosts": {},
                "spread": "host",
                "health_check": None,
                "prepare": None,
                "warm_up": None,
                "park": None,
                "drain": "until_idle",
                "drain_seconds": 2,
                "drain_max_seconds": 3600,
                "stop_grace_seconds": 10,
                "needs": {},
                "release_seconds": 3,
            },
        ),
        (
            DockerSpec,
            {"image": "web:1"},
            {
                "port": 8080,
                "labels": {},
                "resources": LIMITS,
                "pull": "missing",
                "stop_signal": "SIGTERM",
                "network": None,
                "volumes": {},
            },
        ),
        (DockerResources, {}, LIMITS),
        (ExternalSpec, {"task": "fleet.replica"}, {"webhook": None, "queue": None}),
        (ExternalSpec, {"webhook": "https://example.com/replicas"}, {"task": None, "queue": None}),
        (
            HealthCheck,
            {},
            {
                "path": "/health",
                "interval_seconds": 5,
                "timeout_seconds": 2,
                "success_threshold": 1,
                "failure_threshold": 3,
                "initial_delay_seconds": 0,
                "start_deadline_seconds": 60,
            },
        ),
        (
            WarmUpRequest,
            {"path": "/"},
            {"method": "GET", "headers": {}, "body": None, "times": 3, "under_seconds": 2},
        ),
        (Prepare, {"command": ("fetch",)}, {"image": False, "timeout_seconds": 3600}),
        (Prepare, {"image": True}, {"command": None, "timeout_seconds": 3600}),
        (ParkRequest, {"path": "/sleep"}, {"method": "POST"}),
    ],
)
def test_what_a_section_leaves_open(section: type[BaseModel], needed: dict[str, Any], left_out: dict[str, Any]) -> None:
    assert section.model_validate(needed).model_dump() == {**needed, **left_out}


def test_the_times_of_a_warm_up_and_of_a_parked_replica_that_are_left_out() -> None:
    warm_up = WarmUp.model_validate({"requests": [{"path": "/"}]})
    assert (warm_up.at_most_seconds, len(warm_up.requests)) == (600, 1)
    park = Park.model_validate({"sleep": {"path": "/sleep"}, "wake": {"path": "/wake", "method": "PUT"}})
    assert park.awake_within_seconds == 60
    assert park.sleep.request == WarmUpRequest(method="POST", path="/sleep")
    assert park.wake.request == WarmUpRequest(method="PUT", path="/wake")


@pytest.mark.parametrize(
    "written", [{"cache_volumes": {"models": "/models"}}, {"network": "shop"}, {"port": 80}, {"pull": "never"}]
)
def test_what_is_written_down_stays(written: dict[str, Any]) -> None:
    assert DockerSpec.model_validate({"image": "web:1", **written}).model_dump().items() >= written.items()


def test_on_the_network_of_the_host_rollway_chooses_the_port() -> None:
    assert DockerSpec.model_validate({"image": "web:1", "network": "host"}).port is None


def test_the_documented_port_and_processes_of_a_container() -> None:
    assert (DEFAULT_CONTAINER_PORT, DEFAULT_PIDS) == (8080, 4096)
