"""Each kind of wrong value, by the library's name for it, and what is right in its place."""

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import UUID4, AfterValidator, AwareDatetime, BaseModel, Field, TypeAdapter, ValidationError
from pydantic_core._pydantic_core import list_all_errors

from domain.text.validation_errors import fault_of

_OF_THE_LIBRARY = re.compile(
    r"input should|(should|must) (be|have) (a )?valid|validation|tuple|string|python|dict\b", re.IGNORECASE
)


@pytest.mark.parametrize("kind", list_all_errors(), ids=lambda kind: str(kind["type"]))
def test_no_kind_of_fault_is_told_in_words_of_the_library(kind: dict[str, Any]) -> None:
    message = kind["message_template_python"].replace("{error}", "is too red")
    fault = {"type": kind["type"], "loc": ("a",), "msg": message, "input": 1, "ctx": kind["example_context"] or {}}
    sentence = fault_of(fault).sentence()
    assert sentence.startswith("a: ")
    assert not _OF_THE_LIBRARY.search(sentence), sentence


class Size(StrEnum):
    SMALL = "small"


def _is_even(number: int) -> int:
    if number % 2:
        raise AssertionError("must be even, such as 4")
    return number


_WHOLE = "must be a whole number, such as 3"
_NUMBER = "must be a number, such as 1.5"
_NAMES = "must be names, each with its value, such as {NAME: value}"
_ID = "must be an id, such as 0199c3d2-5f1e-7c41-9a02-3b1f6a7d8e90"
_TIME = "must be a time with its zone, such as 2026-01-31T18:00:00Z"


@pytest.mark.parametrize(
    ("kind", "value", "sentence"),
    [
        (int, "three", _WHOLE),
        (int, [], _WHOLE),
        (int, 1.5, _WHOLE),
        (int, "9" * 5000, _WHOLE),
        (float, "half", _NUMBER),
        (float, [], _NUMBER),
        (Annotated[float, Field(allow_inf_nan=False)], float("inf"), "must be a finite number"),
        (bool, [], "must be true or false"),
        (bool, "maybe", "must be true or false"),
        (str, [], "must be text"),
        (str, b"\xff", "must be text in UTF-8"),
        (str, 3, "must be text; put it in quotes"),
        (Annotated[str, Field(max_length=2)], "abc", "must be at most 2 characters long"),
        (Annotated[str, Field(min_length=2)], "a", "must be at least 2 characters long"),
        (Literal["a", "b"], "c", "must be 'a' or 'b'"),
        (Size, "large", "must be 'small'"),
        (Annotated[int, Field(multiple_of=5)], 3, "must be a multiple of 5"),
        (dict[str, int], [], _NAMES),
        (tuple[int, ...], 3, "must be a list"),
        (list[int], 3, "must be a list"),
        (set[int], 3, "must be a list"),
        (frozenset[int], 3, "must be a list"),
        (Annotated[list[int], Field(min_length=2)], [1], "has 1 item, and 2 are the least"),
        (Annotated[set[int], Field(max_length=1)], {1, 2}, "has more than 1 item, which are the most"),
        (Annotated[int, AfterValidator(_is_even)], 3, "must be even, such as 4"),
        (UUID, 3, _ID),
        (UUID, "web", _ID),
        (UUID4, "0199c3d2-5f1e-7c41-9a02-3b1f6a7d8e90", _ID),
        (datetime, [], _TIME),
        (datetime, 1e99, _TIME),
        (datetime, "tomorrow", _TIME),
        (AwareDatetime, "2026-01-01T00:00:00", _TIME),
        (Annotated[int, Field(gt=1)], 1, "must be more than 1"),
        (Annotated[int, Field(ge=1)], 0, "must be at least 1"),
        (Annotated[int, Field(lt=1)], 1, "must be less than 1"),
        (Annotated[float, Field(le=2.5)], 3, "must be at most 2.5"),
        (Annotated[float, Field(gt=3600.0)], 3, "must be more than 3600"),
        (Annotated[float, Field(ge=3600.0)], 3, "must be at least 3600"),
        (Annotated[float, Field(lt=2.0)], 3, "must be less than 2"),
        (Annotated[float, Field(le=2.0)], 3, "must be at most 2"),
    ],
)
def test_a_wrong_value_is_told_what_is_right_for_its_kind(kind: Any, value: object, sentence: str) -> None:
    with pytest.raises(ValidationError) as error:
        TypeAdapter(kind).validate_python(value)
    assert fault_of(error.value.errors()[0]).what == sentence


class Lid(BaseModel):
    colour: str = ""


class Cup(BaseModel):
    lid: Lid = Lid()


class Shelf(BaseModel):
    cups: dict[str, Cup] = Field(default={})


@pytest.mark.parametrize(
    ("model", "path", "sentence"),
    [
        (Cup, ("lid", "color"), "there is no such field; did you mean colour?"),
        (Cup, ("lid", "size"), "there is no such field; the fields are colour"),
        (Shelf, ("cups", "mine", "lid", "color"), "there is no such field"),
    ],
)
def test_fields_are_named_where_the_path_to_them_has_no_free_names(
    model: type[BaseModel], path: tuple[str, ...], sentence: str
) -> None:
    fault = {"type": "extra_forbidden", "loc": path, "input": 1}
    assert fault_of(fault, model).what == sentence
