"""Values that are filled while they are open are what dataclass makes: frozen, with slots, equal and replaceable."""

import inspect
from dataclasses import FrozenInstanceError, dataclass, fields, replace

import pytest

from domain.changes import Decision, RouteChanges
from domain.frozen import frozen
from domain.model import Deployment, Rollout, Route
from domain.transitions import ClassifiedDecision


@frozen
class Hat:
    size: int
    worn_by: str = "nobody"
    feathers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlainHat:
    size: int
    worn_by: str = "nobody"
    feathers: tuple[str, ...] = ()


def test_it_is_filled_as_it_was_asked_for_and_by_its_defaults() -> None:
    assert repr(Hat(54, feathers=("red",))) == "Hat(size=54, worn_by='nobody', feathers=('red',))"
    assert Hat(54) == Hat(size=54, worn_by="nobody")
    assert hash(Hat(54)) == hash(PlainHat(54))
    assert replace(Hat(54), worn_by="Anna") == Hat(54, "Anna")
    assert inspect.signature(Hat) == inspect.signature(PlainHat)


def test_what_is_asked_for_wrongly_is_refused_as_dataclass_refuses_it() -> None:
    with pytest.raises(TypeError, match=r"Hat\.__init__\(\) missing 1 required positional argument: 'size'"):
        Hat()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        Hat(54, colour="red")  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", [Hat, Deployment, Rollout, Route, Decision, RouteChanges, ClassifiedDecision])
def test_it_is_closed_once_it_is_filled(kind: type) -> None:
    value = kind(**{each.name: None for each in fields(kind)})
    assert type(value) is kind
    with pytest.raises(FrozenInstanceError):
        setattr(value, fields(kind)[0].name, 1)
    assert not hasattr(value, "__dict__")
