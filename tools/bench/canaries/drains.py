"""How long fifty replicas on which no request is under way are left running once every proxy has let go of them.

A real api process, a real Envoy, a worker, a beat, and fifty processes that only sleep. They all leave at once: the
deployment is destroyed. Both times are Postgres' own: the last acknowledgement, and when each was asked to end.
"""

from typing import Any

from tests.support.proxies.edge import api_process, envoy_process
from tests.support.stack.waiting import eventually
from tools.bench.figures import percentiles
from tools.bench.passes import middle, passes
from tools.bench.stage import Stage, rolling, stage

REPLICAS = 50
_SPEC = {"command": ["sleep", "600"], "health_check": None, "drain": "until_idle"}
_LEFT = """
    SELECT extract(epoch FROM r.stop_requested_at - max(r.out_of_traffic_at) OVER ())::float8 AS idle,
           extract(epoch FROM r.out_of_traffic_at - r.drain_started_at)::float8 AS acknowledged
      FROM routes r WHERE r.stop_requested_at IS NOT NULL
"""


def measure(*, full: bool) -> dict[str, Any]:
    """The time of each replica from the last acknowledgement of all until it was asked to end."""
    found = [_run() for _ in range(passes(full=full))]
    return {"rows": [middle(found)], "passes": {"asked max s": [row["asked max s"] for row in found]}}


def _run() -> dict[str, Any]:
    with stage() as made:
        api = api_process(made.database, made.valkey.url, made.home)
        envoy = envoy_process(api, made.home)
        try:
            api.start()
            envoy.start()
            made.start_workers("worker1", "worker2")
            made.start_beat()
            made.deploy("web", REPLICAS, rolling(1, 1), _SPEC)
            eventually(lambda: _is_told(made), 60, "the proxy to know all replicas")
            made.ask("destroy", deployment="web")
            eventually(lambda: len(made.rows(_LEFT)) == REPLICAS, 120, "all replicas to be asked to end")
            return _figures(made)
        finally:
            for process in (envoy, api):
                if process.process is not None:
                    process.end(kill=True)


def _is_told(made: Stage) -> bool:
    (row,) = made.rows("SELECT count(*)::int AS n FROM proxies WHERE acked_version IS NOT NULL")
    return bool(row["n"])


def _figures(made: Stage) -> dict[str, Any]:
    rows = made.rows(_LEFT)
    idle = sorted(row["idle"] for row in rows)
    return {
        "replicas": REPLICAS,
        "acknowledged max s": max(row["acknowledged"] for row in rows),
        "asked p50 s": percentiles(idle)[50],
        "asked max s": idle[-1],
    }
