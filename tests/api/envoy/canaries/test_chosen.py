"""Callers who are chosen for a canary get to it whatever its weight is, of a real Envoy."""

from collections import Counter
from typing import Any

import pytest

from tests.support.pictures.pictures import PROVISIONING
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import replicas
from tests.support.proxies.weights import set_weight
from tests.support.rows.deployments import write

FEW = 20

HEADER = {"match": {"header": "X-Beta", "value": "yes"}}
COOKIE = {"match": {"cookie": "beta"}}
STICKY = {**COOKIE, "sticky": True}


def asked(edge: Edge, name: str, **headers: str) -> Counter[str]:
    return Counter(edge.ask(f"/{name}/", **headers).json()["replica"] for _ in range(FEW))


@pytest.mark.parametrize(
    ("name", "spec", "chosen", "others"),
    [
        ("header", HEADER, {"x-beta": "yes"}, {"x-beta": "yess"}),
        ("cookie", COOKIE, {"cookie": "a=1; beta=yes; c=2"}, {"cookie": "a=beta=1; abeta=1; betas=1"}),
        ("odd", {"match": {"cookie": "b.t+a", "value": "a b"}}, {"cookie": "b.t+a=a b"}, {"cookie": "bxt+a=a b"}),
        ("sticky", STICKY, {"cookie": "beta="}, {"cookie": "alpha=1"}),
    ],
)
def test_who_is_chosen_gets_to_the_canary_from_its_first_weight_on_until_its_end(
    envoy_edge: Edge, name: str, spec: dict[str, Any], chosen: dict[str, str], others: dict[str, str]
) -> None:
    with replicas("old", "new") as both:
        policy = {"strategy": "canary", "spec": {"steps": ["0.01%", "50%"], **spec}}
        made = envoy_edge.make("■|■", *both, name=name, status=PROVISIONING, policy=policy)
        envoy_edge.wait_for(f"/{name}/")
        set_weight(envoy_edge, made, 0)
        assert set(asked(envoy_edge, name, **chosen)) == {"old"}
        set_weight(envoy_edge, made, 1)
        assert set(asked(envoy_edge, name, **chosen)) == {"new"}
        # one of 10,000 goes there by its weight: two of these 20 do in one of 500,000 runs
        assert asked(envoy_edge, name, **others)["new"] <= 1
        write(envoy_edge.routes.engine, "UPDATE deployments SET sub_step = 'rolling_back' WHERE id = %s", made.id)
        set_weight(envoy_edge, made, 0)
        assert set(asked(envoy_edge, name, **chosen)) == {"old"}
