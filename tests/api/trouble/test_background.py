"""What continues beside the requests: it ends with the process, and what a newer release wrote is one row's fault."""

import asyncio
import os
import subprocess

from api.serving import end
from tests.support.people.asking import page
from tests.support.proxies.edge import EdgeRoutes
from tests.support.proxies.streaming import live_servers
from tests.support.rows.deployments import make_deployment, read, write
from tests.support.stack.ports import free_port
from tests.support.stack.server_process import Process
from tests.support.stack.waiting import eventually


def test_an_entrance_and_a_route_of_a_newer_release_are_left_out_alone(routes: EdgeRoutes, api: Process) -> None:
    web = make_deployment(routes.engine, "■■■", n=1)
    routes.reached(web.id, "web")
    write(routes.engine, "ALTER TABLE entrances DROP CONSTRAINT entrances_kind_check")
    write(routes.engine, "INSERT INTO entrances (kind, value, deployment_id) VALUES ('sni', 'a.b', %s)", web.id)
    checks = read(
        routes.engine,
        "SELECT conname AS name FROM pg_constraint WHERE conrelid = 'routes'::regclass AND contype = 'c'"
        " AND pg_get_constraintdef(oid) LIKE '%%traffic_status%%'",
    )
    for check in checks:
        write(routes.engine, f"ALTER TABLE routes DROP CONSTRAINT {check['name']}")
    write(routes.engine, "UPDATE routes SET traffic_status = 'mirrored' WHERE id = %s", web.routes[0])
    routes.tell()
    eventually(lambda: live_servers(api, "web") == 2)
    told = page(api.url, "/v1/traffic").json()
    assert told["services"][0]["hosts"] == ["web", "web.localhost"]
    assert [fault.partition(",")[0] for fault in told["left_out"]] == [
        "this release knows no sni entrances",
        "this release knows no traffic 'mirrored'",
    ]
    routes.drain(web.routes[1])
    eventually(lambda: live_servers(api, "web") == 1)


def test_the_process_ends_when_what_reads_the_table_fails(routes: EdgeRoutes, api: Process) -> None:
    """A column of another type, as a newer release may have it, is nothing that reading again could mend."""
    routes.reached(make_deployment(routes.engine, "■", n=1).id, "web")
    write(routes.engine, "ALTER TABLE deployments DROP CONSTRAINT deployments_request_timeout_check")
    write(routes.engine, "ALTER TABLE deployments ALTER request_timeout_seconds TYPE text")
    write(routes.engine, "UPDATE deployments SET request_timeout_seconds = 'long'")
    assert api.process is not None
    assert api.process.wait(20) == 1
    assert "a background task ended, so this process ends" in api.log.read_text()


def test_what_swallows_its_cancelling_is_cancelled_again() -> None:
    """As a client of Redis did that was told to end while it connected: the server waited for it for ever."""
    swallowed: list[int] = []

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if swallowed:
                    raise
                swallowed.append(1)

    async def begin_and_end() -> bool:
        tasks = [asyncio.create_task(stubborn())]
        await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await end(tasks)
        return tasks[0].cancelled()

    assert asyncio.run(begin_and_end())
    assert swallowed


def test_a_server_whose_port_is_taken_ends_and_says_so(api: Process) -> None:
    environment = {**os.environ, **api.environment, "ROLLWAY_DISCOVERY_PORT": str(free_port())}
    second = subprocess.run(api.command, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert second.returncode == 3
    assert "address already in use" in second.stdout + second.stderr
