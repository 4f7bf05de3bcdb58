"""The one table of settings and defaults, docs/policies.md, says what the models say; and the defaults are these."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from domain.policy import RolloutLimits, StrategySpec
from domain.strategies import STRATEGIES, parse_policy

PAGE = Path(__file__).parents[3] / "docs" / "policies.md"
ROW = re.compile(r"^\| (\w+) \| `(\w+)` \| `([^`]+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
AMOUNT = '0 to 10000, or "0%" to "1000%"'


def allowed(field: FieldInfo) -> str:
    """The range of a setting, from its type and its bounds."""
    kind: Any = field.annotation
    if get_origin(kind) is UnionType and NoneType in get_args(kind):
        (kind,) = set(get_args(kind)) - {NoneType}
    if get_origin(kind) is Literal:
        return " or ".join(str(value).lower() for value in get_args(kind))
    if kind is bool:
        return "true or false"
    if kind == int | str:
        return AMOUNT
    bounds = {type(bound).__name__: next(iter(vars_of(bound))) for bound in field.metadata}
    return f"{bounds['Ge']} to {bounds['Le']}" if "Ge" in bounds else f"more than {bounds['Gt']}, up to {bounds['Le']}"


def vars_of(bound: Any) -> Iterator[Any]:
    for name in ("ge", "gt", "le"):
        if hasattr(bound, name):
            yield getattr(bound, name)


def settings_of(name: str, model: type[BaseModel]) -> dict[tuple[str, str], tuple[str, str]]:
    return {(name, field): (json.dumps(info.default), allowed(info)) for field, info in model.model_fields.items()}


def test_the_table_of_defaults_is_what_the_models_say() -> None:
    models: dict[str, type[BaseModel]] = {"limits": RolloutLimits}
    models |= {name: strategy.spec_model for name, strategy in STRATEGIES.items()}
    expected = settings_of("every", StrategySpec)
    for name, model in models.items():
        of_every = {(name, field) for _, field in settings_of("every", StrategySpec)}
        own = settings_of(name, model)
        expected |= {key: own[key] for key in own if key not in of_every or own[key] != expected["every", key[1]]}
    table = {(of, name): (default, within) for of, name, default, within, _ in ROW.findall(PAGE.read_text())}
    assert table == expected


def test_what_a_policy_leaves_out_is_careful() -> None:
    spec = {name: parse_policy({"strategy": name}).as_json()["spec"] for name in STRATEGIES}
    assert spec["rolling_update"] == {
        "max_surge": 1,
        "max_unavailable": 0,
        "pacing": "wave",
        "min_ready_seconds": 0,
        "count_stopping": False,
    }
    assert spec["blue_green"]["auto_promote"] is False
    assert spec["recreate"] == {"count_stopping": True}
