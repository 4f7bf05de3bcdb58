"""Health checks in HTTP/2 and of gRPC: what they ask and what is refused; they rename no revision."""

from typing import Any

import pytest
from pydantic import ValidationError

from domain.revisions.health_check import HealthCheck
from domain.revisions.revision import RevisionSpec

OF_HTTP2: dict[str, Any] = {"protocol": "http2", "path": "/up"}
OF_GRPC: dict[str, Any] = {"protocol": "grpc", "service": "shop.Cart"}


def checked(**check: Any) -> RevisionSpec:
    return RevisionSpec.model_validate({"command": ["serve"], "health_check": check})


@pytest.mark.parametrize(
    ("check", "asked"),
    [
        ({}, "GET /health"),
        (OF_HTTP2, "GET /up"),
        ({"protocol": "grpc"}, "gRPC health check"),
        (OF_GRPC, "gRPC health check of shop.Cart"),
        ({"host": "shop.example.com"}, "GET /health as shop.example.com"),
        ({**OF_GRPC, "host": "shop:50051"}, "gRPC health check of shop.Cart as shop:50051"),
    ],
)
def test_a_check_says_what_it_asks(check: dict[str, Any], asked: str) -> None:
    spec = checked(**check)
    assert spec.health_check
    assert spec.health_check.request_line == asked


@pytest.mark.parametrize("check", [OF_HTTP2, OF_GRPC, {"protocol": "grpc"}, {"host": "shop.example.com"}])
def test_it_reads_back_and_means_something_else_than_plain_http(check: dict[str, Any]) -> None:
    spec = checked(**check)
    assert RevisionSpec.model_validate_json(spec.canonical_json()) == spec
    assert RevisionSpec.model_validate(spec.model_dump()) == spec
    plain = {name: value for name, value in check.items() if name == "path"}
    assert spec.canonical_json() != checked(**plain).canonical_json()


def test_a_check_of_plain_http_is_written_as_before_there_was_any_other() -> None:
    said = checked(protocol="http1", service=None, host=None)
    assert said.canonical_json() == checked().canonical_json()
    assert not {"protocol", "service", "host"} & said.model_dump()["health_check"].keys()


@pytest.mark.parametrize(
    ("check", "field", "said"),
    [
        ({"protocol": "h2"}, "protocol", "'http1', 'http2' or 'grpc'"),
        ({"protocol": "grpc", "path": "/up"}, "protocol", "grpc asks for no path, and path is '/up': leave path out"),
        ({"service": "shop.Cart"}, "service", "belongs to protocol grpc: leave it out, or set protocol: grpc"),
        ({"protocol": "http2", "service": "a"}, "service", "belongs to protocol grpc"),
        ({"protocol": "grpc", "service": ""}, "service", "should match pattern"),
        ({"protocol": "grpc", "service": "a b"}, "service", "should match pattern"),
    ],
)
def test_what_does_not_go_together_is_refused_at_its_field(check: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        checked(**check)
    (fault,) = refused.value.errors()
    assert fault["loc"] == ("health_check", field)
    assert said in fault["msg"]


@pytest.mark.parametrize("host", ["shop.example.com", "localhost", "a", "shop:8000", "10.0.0.1", "my_shop", "x" * 63])
def test_a_host_is_a_name_with_or_without_a_port(host: str) -> None:
    assert checked(host=host).health_check is not None


@pytest.mark.parametrize(
    "host", ["", "https://shop", "shop/", "shop ", "a\r\nx: y", ".", "shop:", "shop:http", "*", "sh{op"]
)
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(ValidationError):
        checked(host=host)


def test_a_probe_names_the_host_that_it_asks_for_or_the_address() -> None:
    assert HealthCheck().host_header("10.0.0.7:80") == "10.0.0.7:80"
    assert HealthCheck(host="shop.example.com").host_header("10.0.0.7:80") == "shop.example.com"
