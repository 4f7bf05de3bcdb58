"""Refusals: a code for programs, a sentence for people, and the values that matter."""

import json
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from domain.commands.base import StaleVersionError
from domain.revisions.revision import RevisionExistsError
from domain.text.errors import (
    FieldFault,
    FieldPath,
    InvalidInputError,
    RolloutNotFoundError,
    RollwayError,
    TooLargeError,
    UnreadableError,
    WrongStateError,
    path_in,
)
from domain.traffic.entrances import EntranceTakenError


class Size(BaseModel):
    least: int = Field(ge=0)
    most: int = Field(ge=0)

    @model_validator(mode="after")
    def _in_order(self) -> "Size":
        if self.least > self.most:
            raise ValueError("least must be at most most")
        return self


class Fleet(BaseModel):
    sizes: list[Size]


def refused(given: object, where: str = "", model: type[BaseModel] = Fleet) -> InvalidInputError:
    with pytest.raises(ValidationError) as error:
        model.model_validate(given)
    return InvalidInputError.of(error.value, where)


def kinds(base: type[RollwayError] = RollwayError) -> list[type[RollwayError]]:
    return [base, *(kind for child in base.__subclasses__() for kind in kinds(child))]


def test_every_refusal_has_a_code_of_its_own() -> None:
    assert len({kind.code for kind in kinds()}) == len(kinds())


def test_a_refusal_is_json_and_its_words_are_the_message() -> None:
    error = StaleVersionError("it has changed", version=3, deployment=UUID(int=1))
    assert json.loads(json.dumps(error.as_json())) == {
        "code": "stale_version",
        "message": "it has changed",
        "detail": {"version": "3", "deployment": str(UUID(int=1))},
    }
    assert str(error) == error.message == "it has changed"


@pytest.mark.parametrize(
    ("path", "dotted", "line", "place"),
    [
        ((), "", None, ""),
        ((), "", 4, "line 4: "),
        (("cron",), "cron", None, "cron: "),
        (("rules", 0, "step"), "rules.0.step", None, "rule 1, step: "),
        (("rules", 0, "step"), "rules.0.step", 4, "line 4, rule 1, step: "),
        (("requests", 1, "headers", "a"), "requests.1.headers.a", None, "request 2, headers.a: "),
        (("spec", "env", "", "A"), "spec.env..A", None, "spec.env.A: "),
        (("documents",), "documents", 4, "line 4, documents: "),
        (("documents", 0), "documents.0", 4, "document 1, line 4: "),
        (("documents", 11, "replicas"), "documents.11.replicas", 4, "document 12, line 4, replicas: "),
        (("documents", 0, "revision", "env"), "documents.0.revision.env", None, "document 1, revision.env: "),
    ],
)
def test_a_fault_says_its_place_for_people_and_for_programs(
    path: FieldPath, dotted: str, line: int | None, place: str
) -> None:
    assert FieldFault(path, "is wrong").sentence(line) == f"{place}is wrong"
    assert path_in(dotted) == path
    refusal = InvalidInputError.at(dotted, "is wrong")
    assert (refusal.message, refusal.detail) == (FieldFault(path, "is wrong").sentence(), {"field": dotted})
    assert refusal.with_lines(lambda of: line if of == path else 0).message == f"{place}is wrong"


def test_a_refusal_that_names_no_field_has_no_line() -> None:
    whole = InvalidInputError("the file is empty")
    assert whole.with_lines(lambda _: 4) is whole


@pytest.mark.parametrize(
    ("error", "message", "detail"),
    [
        (
            UnreadableError.of("status of a replica", "asleep"),
            "this release of Rollway knows no status of a replica 'asleep'; a newer one wrote it",
            {},
        ),
        (
            TooLargeError.of_size(262_145, 262_144, "spec.env"),
            "spec.env: the command has 262,145 bytes, and 262,144 are the most; put what is large into a file",
            {"field": "spec.env"},
        ),
        (RolloutNotFoundError.of_deployment("web"), "web has had no rollout yet", {"deployment": "web"}),
        (
            WrongStateError.of_leaving("web", "destroying", "only its history is shown"),
            "web is destroying; only its history is shown until it is destroyed",
            {"deployment": "web", "state": "destroying"},
        ),
    ],
)
def test_a_refusal_names_what_it_is_about(error: RollwayError, message: str, detail: dict[str, str]) -> None:
    assert (error.message, error.detail) == (message, detail)


@pytest.mark.parametrize(
    ("given", "where", "message", "field"),
    [
        ({}, "", "sizes: is missing", "sizes"),
        ({}, "fleet", "fleet.sizes: is missing", "fleet.sizes"),
        ([], "fleet", "fleet: must be fields, each with its value", "fleet"),
        ({"sizes": [{"least": 1}]}, "", "size 1, most: is missing", "sizes.0.most"),
        ({"sizes": [{"least": 2, "most": 1}]}, "", "size 1: least must be at most most", "sizes.0"),
    ],
)
def test_a_fault_is_told_with_the_path_of_its_field(given: object, where: str, message: str, field: str) -> None:
    error = refused(given, where)
    assert (error.message, error.detail) == (message, {"field": field})


class Harbour(BaseModel):
    berths: tuple[Size, ...] = Field(min_length=1)
    cranes: tuple[Size, ...] = Field(min_length=1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"berths": [], "cranes": [{"least": 1}]}, "berths: must not be empty; crane 1, most: is missing"),
        ({"berths": [{"most": 1}], "cranes": []}, "berth 1, least: is missing; cranes: must not be empty"),
    ],
)
def test_a_list_that_is_empty_is_told_beside_the_fault_of_another_list(given: object, message: str) -> None:
    assert refused(given, model=Harbour).message == message


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Room(BaseModel):
    door: Closed


def test_where_the_fields_are_not_known_none_is_proposed() -> None:
    with pytest.raises(ValidationError) as error:
        Room.model_validate({"door": {"colour": "red"}})
    assert InvalidInputError.of(error.value).message == "door.colour: there is no such field"


def test_several_faults_are_all_told_each_once_and_none_with_what_was_given() -> None:
    error = refused({"least": -7, "most": "secret"}, model=Size)
    assert error.message == ("least: must be at least 0; most: must be a whole number, such as 3")
    assert error.detail == {"field": "least"}


def test_a_fault_of_the_whole_has_no_path() -> None:
    assert refused({"least": 2, "most": 1}, model=Size).message == "least must be at most most"


def test_another_content_for_a_revision_is_refused_naming_it() -> None:
    error = RevisionExistsError.of("web", "v1")
    assert error.message.startswith("revision v1 of web exists with another content; ")
    assert error.detail == {"deployment": "web", "revision": "v1"}


def test_a_taken_entrance_is_refused_naming_both_deployments() -> None:
    error = EntranceTakenError.by("shop", "web", "host", "www.example.com")
    assert error.message.startswith("host www.example.com is shop's, so web cannot have it")
    assert error.detail == {"deployment": "web", "entrance": "www.example.com", "owner": "shop"}


def test_of_many_faults_the_first_twenty_are_told_and_the_rest_is_counted() -> None:
    assert refused({"sizes": [{"least": 1}] * 20}).message.endswith("size 20, most: is missing")
    assert refused({"sizes": [{"least": 1}] * 21}).message.endswith("size 20, most: is missing; and 1 more")
    told = refused({"sizes": [{"least": 1}] * 25}).message
    assert told.startswith("size 1, most: is missing; ")
    assert told.endswith("size 20, most: is missing; and 5 more")
