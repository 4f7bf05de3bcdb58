"""Tests that `make test` leaves to `make test-all`: they need a part that a machine may lack, or take minutes.

`pytest tests/...` runs all that it is told. `--apart=no` leaves these out, without importing them; `--apart=only` runs
nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

APART = {
    "tests/api/envoy/canaries": "minutes of callers of canaries",
    "tests/api/envoy/front/test_http3_handed_over.py": "callers over HTTP/3",
    "tests/api/envoy/front/test_sticky.py": "minutes of callers that stay",
    "tests/api/envoy/test_any_release.py": "long searches",
    "tests/api/people/test_many_deployments.py": "a browser",
    "tests/api/people/test_schema.py": "a thousand generated requests",
    "tests/api/proxies/test_traefik.py": "Traefik",
    "tests/db/schema/test_right_decisions.py": "long searches",
    "tests/domain/laws/judged": "thousands of canaries",
    "tests/domain/laws/test_plans.py": "long searches",
    "tests/domain/laws/test_rollout_machine.py": "long searches",
    "tests/domain/laws/test_whys.py": "long searches",
    "tests/e2e/edge": "minutes of callers, and Pebble, an authority",
    "tests/e2e/faults/test_installations.py": "two installations",
    "tests/e2e/faults/test_poolers_and_standbys.py": "PgBouncer and a second PostgreSQL",
    "tests/e2e/faults/test_restore.py": "pg_dump and pg_restore",
    "tests/e2e/faults/test_unfit_servers.py": "PostgreSQL and Redis of other releases",
    "tests/e2e/faults/test_upgrade.py": "the release before, from git",
    "tests/e2e/page": "a browser",
    "tests/e2e/partitions": "networks of its own",
    "tests/e2e/rollouts/test_first_service.py": "curl, and all that a page shows",
    "tests/e2e/rollouts/test_preparing.py": "a minute of hosts that prepare",
    "tests/e2e/rollouts/test_sleeping.py": "a minute of models that load",
    "tests/e2e/rollouts/test_steering_at_once.py": "a crowd of people at once",
    "tests/e2e/rollouts/test_warm_up.py": "a minute of slow answers",
    "tests/e2e/services/test_clients.py": "generated clients in Python and TypeScript",
    "tests/e2e/services/test_docker.py": "a Docker engine",
    "tests/e2e/services/test_page_session.py": "a browser",
    "tests/e2e/services/test_recipes.py": "servers of the recipes, from a registry",
    "tests/e2e/services/test_task_events.py": "Flower, and a comparison of two workers",
    "tests/e2e/services/test_tls.py": "Redis behind TLS",
    "tests/monitoring": "Prometheus and Alertmanager",
    "tests/prove": "long searches",
    "tests/reference/test_recipes.py": "copies of the repository, changed as docs/extending.md says",
    "tests/reference/test_site.py": "Sphinx",
    "tests/runtime/docker": "a Docker engine",
    "tests/stack/test_crashes.py": "a minute of parts that crash",
    "tests/stack/test_package.py": "a wheel, built and installed",
    "tests/tasks/cycle/test_storm.py": "long searches",
    "tests/trust/test_closed_to_replicas.py": "root, and accounts of the machine",
    "tests/trust/test_container_thief.py": "a Docker engine",
    "tests/trust/test_stack_ports.py": "whole stacks beside a thief of ports",
    "tests/trust/test_stack_thief.py": "whole stacks beside a thief of secrets",
}
"""What each file, or folder, needs."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --apart."""
    parser.addoption("--apart", choices=("also", "no", "only"), default="also", help="what of tests/apart.py is run")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a file or a folder, where this run is not about it."""
    chosen = config.getoption("apart")
    if chosen == "also" or not collection_path.is_relative_to(config.rootpath / "tests"):
        return None
    path = collection_path.relative_to(config.rootpath).as_posix()
    is_apart = any(path == apart or path.startswith(f"{apart}/") for apart in APART)
    if chosen == "no":
        return True if is_apart else None
    leads_there = any(apart.startswith(f"{path}/") for apart in APART)
    return None if is_apart or leads_there or collection_path.name == "conftest.py" else True
