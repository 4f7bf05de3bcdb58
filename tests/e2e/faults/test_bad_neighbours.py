"""Replicas, revisions and runtimes that go wrong, all at once on one host: who runs beside them notices nothing."""

import sys
import time

import pytest

from tests.support.people.webhooks import serving
from tests.support.rows.deployments import write
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e

BYE = "import sys; sys.stdout.buffer.write(b'bye\\0bye'); sys.exit(3)"
CHECKED = {"health_check": {"interval_seconds": 0.5}}
USUAL_SECONDS = 12
"""In which a service comes up, or is replaced, on a busy machine; with these neighbours it never did."""

_OF_THE_NEXT_RELEASE = 'UPDATE revisions SET spec = spec || \'{"runtime": "podman"}\' WHERE deployment_id = %s'


def deploy(fleet: Fleet, name: str, replicas: int, **spec: object) -> None:
    fleet.ask("create_deployment", deployment=name, desired_replicas=replicas)
    fleet.ask("add_revision", deployment=name, name="v1", spec=spec)
    fleet.ask("activate_revision", deployment=name, revision="v1")


def test_a_deployment_beside_all_of_them_comes_up_is_replaced_and_drains_as_ever(fleet: Fleet) -> None:
    fleet.start_workers("worker1", DOCKER_HOST=f"unix://{fleet.home}/nobody.sock")
    fleet.start_beat()
    with serving() as hook:
        hook.drip_seconds = 2
        deploy(fleet, "bye", 2, command=[sys.executable, "-c", BYE], **CHECKED)
        deploy(fleet, "boxes", 60, runtime="docker", docker={"image": "web:1"})
        deploy(fleet, "dripping", 20, runtime="external", external={"webhook": hook.url}, drain_seconds=0)
        deploy(fleet, "next", 2, command=["sleep", "60"])
        write(fleet.engine, _OF_THE_NEXT_RELEASE, fleet.state("next")["id"])
        eventually(lambda: fleet.routes("bye", "failed"), what="the bad ones to be tried")

        began = time.monotonic()
        fleet.deploy_first("web", replicas=2)
        assert time.monotonic() - began < USUAL_SECONDS
        began = time.monotonic()
        fleet.replica_processes("web")[0].kill()
        eventually(lambda: fleet.routes("web", "failed"), USUAL_SECONDS, "the loss to be noticed")
        fleet.wait_until_ready("web", "v1", 2)
        assert time.monotonic() - began < 2 * USUAL_SECONDS
        fleet.ask("destroy", deployment="web")
        eventually(lambda: fleet.state("web")["lifecycle"] == "destroyed", USUAL_SECONDS, "the drain")
        for name in ("boxes", "dripping"):
            fleet.ask("destroy", deployment=name)
        eventually(lambda: fleet.state("boxes")["lifecycle"] == "destroyed", what="what never started to be gone")
        fleet.ask("destroy", deployment="dripping", force=True)
        eventually(lambda: fleet.state("dripping")["lifecycle"] == "destroyed", what="what nobody can stop to be gone")
