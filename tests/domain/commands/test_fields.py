"""The fields of a command as values, each as its class declares it."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, Field

from domain.commands.base import DeploymentCommand, Starting
from domain.commands.deployment_commands import AddRevision, SetPolicy
from domain.commands.fields import CommandField, field_at, fields_of
from domain.commands.fleet_commands import SetFreeze
from domain.commands.registry import COMMANDS
from domain.commands.replica_commands import PushMetric
from domain.commands.rollout_commands import ActivateRevision, RollingUpdate, Undo


class Cup(BaseModel):
    """A cup."""

    colour: Literal["red", "blue"] = "red"
    """The colour."""
    litres: float | None = Field(default=None, ge=0.1, le=2)
    """The size."""


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Brew(DeploymentCommand):
    """Makes coffee."""

    example: ClassVar[dict[str, Any]] = {"cups": 2}

    cups: Annotated[int, Field(ge=1, le=12)] = 1
    share: int | str | None = None
    """The part of the pot."""
    strength: Annotated[float | str, Field(default=0.5)]
    is_hot: bool = True
    steep_seconds: float = 4.5
    words: Annotated[list[str], Field(default=[])]
    env: Annotated[dict[str, str], Field(default={})]
    cup: Cup | None = None
    """Left out: a cup."""
    tray: tuple[Cup, ...] = ()
    sizes: tuple[Size, ...] = ()
    labels: Annotated[dict[Annotated[str, Field(pattern="^[a-z]")], str], Field(default={})]
    order: list[str] | str = "black"
    bean: Annotated[str, Field(json_schema_extra={"x-names": "bean", "x-unit": "kg", "x-when": "kind=drip"})] = "x"
    name: str = Field(min_length=2, max_length=9)
    """The name of the brew,
    in one line."""


COLOUR = CommandField("colour", "text", "The colour.", is_needed=False, choices=("red", "blue"), default="red")
LITRES = CommandField("litres", "number", "The size.", is_needed=False, least=0.1, most=2, may_be_null=True)


@pytest.mark.parametrize(
    "field",
    [
        CommandField("name", "text", "The name of the brew, in one line.", is_needed=True, least=2, most=9),
        CommandField("cups", "integer", "", is_needed=False, least=1, most=12, default=1, example=2),
        CommandField("share", "amount", "The part of the pot.", is_needed=False, may_be_null=True),
        CommandField("strength", "amount", "", is_needed=False, default=0.5),
        CommandField("is_hot", "boolean", "", is_needed=False, default=True),
        CommandField("steep_seconds", "number", "", is_needed=False, unit="s", default=4.5),
        CommandField("words", "words", "", is_needed=False, default=[]),
        CommandField("env", "variables", "", is_needed=False, default={}),
        CommandField("cup", "values", "Left out: a cup.", is_needed=False, may_be_null=True, fields=(COLOUR, LITRES)),
        CommandField("tray", "items", "", is_needed=False, default=[], fields=(COLOUR, LITRES)),
        CommandField("sizes", "words", "", is_needed=False, default=[]),
        CommandField("labels", "variables", "", is_needed=False, default={}),
        CommandField("order", "words", "", is_needed=False, default="black"),
        CommandField("bean", "text", "", is_needed=False, unit="kg", names="bean", default="x", when="kind=drip"),
    ],
    ids=lambda field: field.name,
)
def test_a_field_is_what_its_class_declares(field: CommandField) -> None:
    assert {each.name: each for each in fields_of(Brew)}[field.name] == field


def test_needed_fields_come_first_then_its_own_then_common_ones_and_none_that_its_path_has() -> None:
    assert next(iter(fields_of(Brew))).name == "name"
    assert len(fields_of(Brew)) == 14
    assert [field.name for field in fields_of(ActivateRevision)] == [
        "revision",
        "supersede",
        "desired_replicas",
        "through_freeze",
    ]
    assert [field.name for field in fields_of(PushMetric)] == ["metric", "value", "deployment"]
    inherited = {"request_id", "actor", "reason", "schema_version", "expected_version"}
    for command in COMMANDS.values():
        names = [field.name for field in fields_of(command)]
        assert not inherited & set(names)
        if issubclass(command, DeploymentCommand):
            assert "deployment" not in names
        if issubclass(command, Starting):
            assert names[-1] == "through_freeze"


def test_a_policy_has_its_strategy_the_settings_of_each_and_the_limits() -> None:
    (policy,) = fields_of(SetPolicy)
    strategy, *settings, limits = policy.fields
    assert (strategy.name, strategy.is_needed, strategy.may_be_null) == ("strategy", True, False)
    assert strategy.choices == ("rolling_update", "blue_green", "recreate", "canary")
    assert [field.when for field in settings] == [f"strategy={name}" for name in strategy.choices]
    for field in (*settings, limits):
        assert (field.kind, field.is_needed, field.may_be_null, field.default) == ("values", False, False, {})
        assert field.fields
        assert field.meaning.endswith(".")
    assert {field.name for field in settings} == {"spec"}
    assert limits.name == "limits"


def test_the_fields_of_a_file_are_left_to_its_editor() -> None:
    (documents,) = (field for field in fields_of(COMMANDS["rollway.apply"]) if field.name == "documents")
    assert (documents.kind, documents.fields) == ("documents", ())


@pytest.mark.parametrize(
    ("model", "path", "kind", "unit", "when"),
    [
        (AddRevision, "spec.docker.image", "text", "", ""),
        (AddRevision, "spec.docker", "values", "", "runtime=docker"),
        (AddRevision, "spec.user", "text", "", "runtime=process"),
        (AddRevision, "spec.external", "values", "", "runtime=external"),
        (AddRevision, "spec.docker.resources.memory", "amount", "", ""),
        (AddRevision, "spec.warm_up.requests.path", "text", "", ""),
        (AddRevision, "spec.env.secret", "text", "", ""),
        (RollingUpdate, "image", "text", "", ""),
        (SetFreeze, "duration_seconds", "integer", "s", ""),
    ],
)
def test_a_field_is_had_by_its_path(model: Any, path: str, kind: str, unit: str, when: str) -> None:
    field = field_at(model, path)
    assert (field.name, field.kind, field.unit, field.when) == (path.rpartition(".")[2], kind, unit, when)


@pytest.mark.parametrize(
    ("model", "path"),
    [(ActivateRevision, "revision"), (Undo, "revision"), (RollingUpdate, "revision"), (RollingUpdate, "values_of")],
)
def test_a_field_that_names_a_revision_says_so(model: Any, path: str) -> None:
    assert field_at(model, path).names == "revision"
