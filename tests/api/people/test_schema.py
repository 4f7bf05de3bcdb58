"""Whatever a role sends, every answer is in the description, and none is an internal error."""

from collections import Counter
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from api.people.resources.openapi import openapi
from domain.installation.tokens import Role
from tests.support.people.people_api import People
from tests.support.people.soak_report import leave, size
from tests.support.pictures.pictures import PROVISIONING, READY
from tests.support.rows.deployments import make_deployment

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
NAMES = ("rests", "rolls")
QUICK = 50
PASSES = len(Role) * len(GenerationMode)
EXAMPLES = size("http", quick=PASSES * QUICK) // PASSES
PATIENCE_SECONDS = 60
"""A plan of ten thousand replicas yields to everything else that runs on the machine."""
ANSWERED: Counter[str] = Counter()
ANYTHING = schemathesis.openapi.from_dict(dict(openapi()))
OPERATIONS = [
    operation
    for found in ANYTHING.get_all_operations()
    if isinstance(found, Ok) and (operation := found.ok()).path != "/v1/events"  # it never ends
]


@pytest.fixture(scope="module")
def secrets(people_server: People) -> dict[Role, str]:
    make_deployment(people_server.engine, "■■■", name="rests", status=READY)
    make_deployment(people_server.engine, "■■|◇", name="rolls", status=PROVISIONING)
    return {role: people_server.token(role) for role in Role}


@pytest.mark.parametrize("mode", GenerationMode, ids=str)
@pytest.mark.parametrize("role", Role)
def test_no_request_is_a_fault_and_every_answer_is_as_described(
    people_server: People, secrets: dict[Role, str], role: Role, mode: GenerationMode
) -> None:
    cases: st.SearchStrategy[Any] = st.one_of([operation.as_strategy(mode) for operation in OPERATIONS])
    checks = CHECKS if mode is GenerationMode.POSITIVE else [*CHECKS, negative_data_rejection]
    shown = {"authorization": f"Bearer {secrets[role]}"}

    @settings(
        suppress_health_check=list(HealthCheck), max_examples=EXAMPLES, derandomize=EXAMPLES == QUICK, deadline=None
    )
    @given(case=cases, name=st.sampled_from(["", *NAMES]))
    def sent(case: Any, name: str) -> None:
        if (
            name
            and mode is GenerationMode.POSITIVE
            and "deployment" in case.path_parameters
            and "destroy" not in case.path
        ):
            case.path_parameters["deployment"] = name
        response = case.call(base_url=people_server.server.url, headers=shown, timeout=PATIENCE_SECONDS)
        ANSWERED[f"{role} {mode.value} {response.status_code}"] += 1
        sent = parse_qsl(urlsplit(response.request.url).query, keep_blank_values=True)
        is_whole = set(case.query or ()) <= {name for name, _ in sent}
        case.validate_response(response, checks=checks if is_whole else CHECKS)  # a list of nothing is not sent

    sent()
    leave("http", checks=sum(ANSWERED.values()), answered=dict(ANSWERED))
    assert ANSWERED[f"{role} {mode.value} 200"] or mode is GenerationMode.NEGATIVE
