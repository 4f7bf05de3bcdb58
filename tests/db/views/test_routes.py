"""Routes as people ask for them: by a few digits, or by ids that they know."""

from sqlalchemy import Engine

from db.connection.transactions import transaction
from db.views.route_views import routes_abbreviated, routes_of
from tests.support.rows.deployments import make_deployment


def test_replicas_are_found_by_digits_and_by_ids_of_the_deployments_that_are_named(engine: Engine) -> None:
    web, shop = make_deployment(engine, "■■").routes, make_deployment(engine, "■", n=1, name="shop").routes
    with transaction(engine) as connection:
        for names, expected in ((None, shop), (["web", "shop"], shop), (["web"], ()), ([], ())):
            found = routes_abbreviated(connection, shop[0].hex, names)
            assert tuple(route.id for route in found) == expected
        found = routes_of(connection, "web", [*shop, web[1]])
    assert [route.id for route in found] == [web[1]]
