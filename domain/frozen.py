"""Frozen dataclasses of many fields, made in half the time: they are filled while they are open, and then closed."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(declared: type[T]) -> type[T]:
    """`@dataclass(frozen=True, slots=True)`, for the values that each cycle makes of each deployment.

    What dataclass writes sets each field by a call of `object.__setattr__`. Here a value begins as one of a class with
    the same slots that is not frozen, whose fields are set by plain assignments:

        def __init__(self, id, name, paused_at=None):
            object.__setattr__(self, "__class__", Open)
            self.id = id; self.name = name; self.paused_at = paused_at
            self.__class__ = Closed
    """
    closed: Any = dataclass(frozen=True, slots=True)(declared)
    closed.__init__ = _filled_while_open(closed)
    made: type[T] = closed
    return made


def _filled_while_open(closed: Any) -> Callable[..., None]:  # noqa: ANN401  (a dataclass)
    names = [each.name for each in fields(closed)]
    scope = {"Closed": closed, "Open": type(f"Open{closed.__name__}", (), {"__slots__": names})}
    lines = ("object.__setattr__(self, '__class__', Open)", *(f"self.{name} = {name}" for name in names))
    source = "\n    ".join((f"def __init__(self, {', '.join(names)}):", *lines, "self.__class__ = Closed"))
    exec(source, scope)  # noqa: S102  (as dataclass does: names of fields, and nothing from outside)
    init: Any = scope["__init__"]
    written = closed.__init__
    init.__defaults__, init.__annotations__, init.__qualname__ = (
        written.__defaults__,
        written.__annotations__,
        written.__qualname__,
    )
    filled: Callable[..., None] = init
    return filled
