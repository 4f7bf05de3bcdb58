"""A deployment in maintenance: a real Envoy answers its callers, and what is not theirs continues."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.views.deployment_views import deployment_named
from domain.model.states import DeploymentLifecycleStatus, DeploymentSubStep, Lifecycle
from tests.support.people.asking import page
from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import replicas
from tests.support.rows.deployments import ask, read
from tests.support.stack.waiting import eventually
from traffic.envoy.stats import COUNTERS_PAGE, Counted, read_counters

DEPLOYING = DeploymentLifecycleStatus(Lifecycle.DEPLOYING, DeploymentSubStep.PROVISIONING)
PREVIEW = {"x-rollway-preview": "true"}


def maintain(edge: Edge, name: str, state: str = "on", **said: object) -> None:
    ask(edge.routes.engine, "set_maintenance", deployment=name, state=state, **said)
    edge.routes.tell()


def test_callers_get_503_of_the_proxy_itself_and_a_hint_when_to_come_back(envoy_edge: Edge) -> None:
    with replicas("here") as (here,):
        name = envoy_edge.make("■", here).name
        envoy_edge.wait_for(f"/{name}/")
        maintain(envoy_edge, name, retry_after_seconds=7)
        envoy_edge.wait_for(f"/{name}/", 503)
        envoy_edge.wait_for("/", 503, host=name)
        served = here.served.total()
        for path, headers in ((f"/{name}/", {}), ("/", {"host": f"{name}.localhost"})):
            for method in ("GET", "POST"):
                answer = envoy_edge.ask(path, method, **headers)
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")
                assert answer.text == f"Rollway: {name} is in maintenance; try again later.\n"
        assert here.served.total() == served, "no replica is asked"
        maintain(envoy_edge, name, "off")
        envoy_edge.wait_for(f"/{name}/")


def test_a_page_of_ones_own_is_html_and_as_long_as_it_may_be(envoy_edge: Edge) -> None:
    with replicas("here") as (here,):
        name = envoy_edge.make("■", here).name
        envoy_edge.wait_for(f"/{name}/")
        sorry = "<h1>Back at 8 %REQ(x-a)% </h1>" + "ü" * 32_000
        maintain(envoy_edge, name, page=sorry)
        envoy_edge.wait_for(f"/{name}/", 503)
        answer = envoy_edge.ask(f"/{name}/")
        assert answer.text == sorry
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["cache-control"] == "no-store"


def test_previews_are_reached_and_so_is_all_by_who_sends_the_header(envoy_edge: Edge) -> None:
    with replicas("old", "new") as (old, new):
        name = envoy_edge.make("■|□", old, new, status=DEPLOYING).name
        envoy_edge.wait_for(f"/{name}/")
        maintain(envoy_edge, name, allow="X-From-Inside: yes")
        envoy_edge.wait_for(f"/{name}/", 503)
        assert envoy_edge.ask(f"/{name}/", **PREVIEW).json()["replica"] == "new"
        assert envoy_edge.ask("/", host=f"preview.{name}").json()["replica"] == "new"
        assert envoy_edge.ask(f"/{name}/", **{"x-from-inside": "yes"}).json()["replica"] == "old"
        assert envoy_edge.ask(f"/{name}/", **{"x-from-inside": "no"}).status_code == 503
        maintain(envoy_edge, name, allow="x-any")
        eventually(lambda: envoy_edge.ask(f"/{name}/", **{"x-any": "1"}).status_code == 200)
        assert envoy_edge.ask(f"/{name}/", **{"x-from-inside": "yes"}).status_code == 503


def test_what_the_proxy_answers_itself_counts_for_no_revision_and_no_deployment(envoy_edge: Edge) -> None:
    with replicas("old", "new") as (old, new):
        made = envoy_edge.make("■|□", old, new, status=DEPLOYING)
        envoy_edge.wait_for(f"/{made.name}/")
        maintain(envoy_edge, made.name)
        envoy_edge.wait_for(f"/{made.name}/", 503)
        (proxy,) = read(envoy_edge.routes.engine, "SELECT stats_address FROM proxies")
        url = f"http://{proxy['stats_address']}{COUNTERS_PAGE}"
        revisions = (made.v1, made.v2)
        before = eventually(lambda: added_up(read_counters(plain_http.get(url).content), made.name, revisions))
        for _ in range(20):
            assert envoy_edge.ask(f"/{made.name}/").status_code == 503
        envoy_edge.ask(f"/{made.name}/", **PREVIEW)
        after = read_counters(plain_http.get(url).content)
        assert after.counters(made.name, revisions).of == before.counters(made.name, revisions).of
        assert after.requests(made.name) == before.requests(made.name)


def added_up(seen: Counted, name: str, revisions: Sequence[UUID]) -> Counted | None:
    """What a proxy has counted, once it has added up times to the first byte too, up to two seconds later."""
    answers = seen.counters(name, revisions).of.values()
    return seen if all(sum(each.first_byte) == each.done for each in answers) else None


def test_who_looks_sees_since_when_and_by_whom(envoy_edge: Edge) -> None:
    with replicas("here") as (here,):
        name = envoy_edge.make("■", here).name
        maintain(envoy_edge, name, actor="ann", reason="the database moves", allow="x-inside: secret")
        view = shown(envoy_edge.routes.engine, name)
        assert view.endswith("UTC, by ann (the database moves); callers get 503; who sends x-inside gets through")
        envoy_edge.wait_for(f"/{name}/", 503)
        (service,) = [
            each for each in page(envoy_edge.api.url, "/v1/traffic").json()["services"] if each["name"] == name
        ]
        assert service["maintenance"]["allow"] == "x-inside", "its value may be what only some know"
        maintain(envoy_edge, name, "off")
        assert shown(envoy_edge.routes.engine, name) == ""


def shown(engine: Engine, name: str) -> str:
    with transaction(engine) as connection:
        return deployment_named(connection, name).maintenance
