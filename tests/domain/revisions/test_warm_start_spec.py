"""The sections warm_up and prepare of a revision, and what is refused there."""

from typing import Any

import pytest
from pydantic import ValidationError

from domain.revisions.revision import RevisionSpec, WrittenSpec, revision_name
from domain.revisions.warm_start_spec import WarmUp, WarmUpRequest
from domain.text.errors import InvalidInputError

COMMAND = {"command": ["serve"]}


def fault_of(warm_up: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        RevisionSpec.model_validate({**COMMAND, "warm_up": warm_up})
    return str(InvalidInputError.of(caught.value, model=RevisionSpec))


def test_a_revision_that_is_not_warmed_up_has_the_name_that_it_always_had() -> None:
    assert "warm_up" not in RevisionSpec.model_validate(COMMAND).canonical_json()


def test_a_warm_up_is_part_of_the_name_and_is_read_back() -> None:
    spec = RevisionSpec.model_validate({**COMMAND, "warm_up": {"requests": [{"path": "/"}]}})
    assert revision_name("web", spec) != revision_name("web", RevisionSpec.model_validate(COMMAND))
    assert RevisionSpec.model_validate_json(spec.canonical_json()) == spec


def test_what_is_left_out_of_a_warm_up() -> None:
    warm_up = WarmUp.model_validate({"requests": [{"path": "/"}]})
    (request,) = warm_up.requests
    assert (request.method, request.times, request.under_seconds, warm_up.at_most_seconds) == ("GET", 3, 2, 600)


@pytest.mark.parametrize(
    ("warm_up", "fault"),
    [
        ({}, "warm_up.requests"),
        ({"requests": []}, "warm_up.requests"),
        ({"requests": [{"path": "v1"}]}, "warm_up.request 1, path"),
        ({"requests": [{"path": "/a b"}]}, "warm_up.request 1, path"),
        ({"requests": [{"path": "/", "method": "FETCH"}]}, "warm_up.request 1, method"),
        ({"requests": [{"path": "/", "body": "{}"}]}, "belongs to the methods POST, PUT, PATCH, and method is GET"),
        ({"requests": [{"path": "/", "method": "POST", "body": "x" * 65_536}]}, "must have at most 65,535 bytes"),
        ({"requests": [{"path": "/", "times": 0}]}, "warm_up.request 1, times"),
        ({"requests": [{"path": "/", "under_seconds": 0}]}, "warm_up.request 1, under_seconds"),
        ({"requests": [{"path": "/", "headers": {"a b": "c"}}]}, "'a b' is refused: a header has a name"),
        ({"requests": [{"path": "/", "headers": {"a": "c\r\nb: d"}}]}, "'a' is refused: a header has a name"),
        ({"requests": [{"path": "/", "headers": {"Content-Length": "3"}}]}, "Rollway sets it itself"),
        ({"requests": [{"path": "/", "headers": {"X-Rollway-Warm-Up": "no"}}]}, "Rollway sets it itself"),
        ({"requests": [{"path": "/", "headers": {"A": "1", "a": "2"}}]}, "has a header twice"),
        ({"requests": [{"path": "/"}], "at_most_seconds": 2}, "must be greater than under_seconds, which is 2"),
        ({"requests": [{"path": "/"}], "timeout": 2}, "warm_up.timeout"),
    ],
)
def test_what_cannot_be_sent_is_refused_by_its_field(warm_up: dict[str, Any], fault: str) -> None:
    assert fault in fault_of(warm_up)


DOCKER = {"runtime": "docker", "docker": {"image": "chat:1"}}


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({**COMMAND, "prepare": {}}, "prepare: needs a command, such as 'hf download org/model', or image: true"),
        ({**COMMAND, "prepare": {"image": True}}, "prepare: image belongs to runtime 'docker'"),
        ({**COMMAND, "prepare": {"command": ""}}, "prepare.command"),
        ({**COMMAND, "prepare": {"command": "fetch 'it"}}, "prepare.command: has a quote that is not closed"),
        ({**COMMAND, "prepare": {"command": "fetch", "timeout_seconds": 0}}, "prepare.timeout_seconds"),
        ({**COMMAND, "prepare": {"command": "a && b"}}, "prepare: command: no shell reads '&&'"),
        (
            {"runtime": "external", "external": {"webhook": "http://x/"}, "prepare": {"command": "fetch"}},
            "prepare: must be left out with runtime 'external'",
        ),
    ],
)
def test_what_no_host_can_do_is_refused_by_its_field(spec: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValidationError) as caught:
        WrittenSpec.model_validate(spec)
    assert fault in str(InvalidInputError.of(caught.value, model=WrittenSpec))


def test_a_preparation_is_a_command_as_that_of_a_replica_or_an_image() -> None:
    spec = RevisionSpec.model_validate({**COMMAND, "prepare": {"command": "hf download 'org/a model'"}})
    assert spec.prepare
    assert (spec.prepare.command, spec.prepare.timeout_seconds) == (("hf", "download", "org/a model"), 3600)
    assert RevisionSpec.model_validate_json(spec.canonical_json()) == spec
    image = RevisionSpec.model_validate({**DOCKER, "prepare": {"image": True}})
    assert revision_name("web", image) != revision_name("web", RevisionSpec.model_validate(DOCKER))
    assert "prepare" not in RevisionSpec.model_validate(DOCKER).canonical_json()


@pytest.mark.parametrize(
    "name",
    ["connection", "content-length", "te", "trailer", "transfer-encoding", "upgrade", "x-rollway-warm-up", "Upgrade"],
)
def test_a_header_that_rollway_sets_itself_is_refused(name: str) -> None:
    fault = fault_of({"requests": [{"path": "/", "headers": {name: "1"}}]})
    assert fault == f"warm_up.request 1, headers: {name!r} is refused: Rollway sets it itself"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_some_methods_have_a_body_and_the_others_none(method: str) -> None:
    given = {"path": "/", "method": method, "body": "{}", "headers": {"Content-Type": "a/b;\tq=~"}}
    assert WarmUpRequest.model_validate(given).model_dump().items() >= given.items()
    for other in ("GET", "HEAD", "DELETE"):
        assert WarmUpRequest.model_validate({"path": "/", "method": other}).body is None
        fault = fault_of({"requests": [{**given, "method": other}]})
        assert fault.endswith(f"body: belongs to the methods POST, PUT, PATCH, and method is {other}")


def test_a_body_of_a_method_that_there_is_not_is_no_second_fault() -> None:
    fault = fault_of({"requests": [{"path": "/", "method": "FETCH", "body": "{}"}]})
    assert fault == "warm_up.request 1, method: must be 'GET', 'HEAD', 'POST', 'PUT', 'PATCH' or 'DELETE'"


def test_a_request_is_told_without_its_query() -> None:
    assert str(WarmUpRequest(method="HEAD", path="/v1/models?key=s3cret")) == "HEAD /v1/models"
