"""Pydantic's faults as sentences with the field's path, and the meaning of each field."""

import ast
import difflib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, get_args

from pydantic import BaseModel

from domain.text.errors import FieldFault, FieldPath, InvalidInputError
from domain.text.numbers import number_of
from domain.text.storable import DEPLOYMENT_NAME_PATTERN, NAME_PATTERN

Fault = Mapping[str, Any]
"""An error of Pydantic's list: "type", "loc", "msg", "input", "ctx"."""

_WORD = "must be one word, without blanks"
_PATTERNS = {
    NAME_PATTERN: "must be lower-case letters, digits, '-' and '.', 63 at most",
    DEPLOYMENT_NAME_PATTERN: "must be lower-case letters, digits, '-' and '.', 54 at most",
    r"^[a-z0-9]([a-z0-9.-]{0,53})?\*?$": "must be the name of a deployment, or its beginning with a *, such as web-*",
    "^/": "must begin with '/', such as /health",
    r"^/[!-~]*$": "must be a path, such as /metrics",
    "^[A-Za-z0-9 ._~/+:@%=-]*$": "must be letters, digits, blanks and . _ ~ / + : @ % = - only",
    r"^[a-zA-Z_:][a-zA-Z0-9_:]*$": "must be the name of a metric: letters, digits, '_' and ':', such as queue_length",
    r"^[^\x00]*$": "must not have the character NUL",
    r"^[!-~]+$": "must be letters, digits and signs without blanks, such as shop.Cart",
    r"^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9])?(:[0-9]{1,5})?$": "must be a host name, such as shop.example.com",
    r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$": "must be a lower-case host name, such as shop.example.com",
    r"^[a-z_][a-z0-9_.-]{0,31}$": "must be the name of a user: lower-case letters, digits, '_', '-' and '.'",
    r"^[^\s-]\S*$": "must be the name of an image, such as registry.example.com/web:2",
    r"^SIG[A-Z0-9+]+$": "must be the name of a signal, such as SIGTERM",
    r"^\S+$": _WORD,
    "^[0-9a-f]{1,32}$": "must be hexadecimal digits of an id, such as 3f2a9c1b",
}
"""What each pattern asks for."""

_TIME = "a time with its zone, such as 2026-01-31T18:00:00Z"
_FIELDS = "fields, each with its value"
_RIGHT = {
    "int_type": "a whole number, such as 3",
    "int_parsing": "a whole number, such as 3",
    "int_parsing_size": "a whole number, such as 3",
    "int_from_float": "a whole number, such as 3",
    "float_type": "a number, such as 1.5",
    "float_parsing": "a number, such as 1.5",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "string_unicode": "text in UTF-8",
    "string_too_long": "at most {max_length} characters long",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "multiple_of": "a multiple of {multiple_of}",
    "dict_type": "names, each with its value, such as {{NAME: value}}",
    "tuple_type": "a list",
    "list_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "uuid_type": "an id, such as 0199c3d2-5f1e-7c41-9a02-3b1f6a7d8e90",
    "uuid_parsing": "an id, such as 0199c3d2-5f1e-7c41-9a02-3b1f6a7d8e90",
    "uuid_version": "an id, such as 0199c3d2-5f1e-7c41-9a02-3b1f6a7d8e90",
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
    "timezone_aware": _TIME,
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
}
"""A right value, by the kind of fault."""

_BOUNDS = ("gt", "ge", "lt", "le")

_MEANT = {
    "image": "an image is run by 'runtime: docker' and 'docker: {image: ...}'",
    "port": "each replica gets a port of its own, as {port} in 'command' and as PORT in its environment",
    "ports": "each replica gets a port of its own, as {port} in 'command' and as PORT in its environment",
}
"""Fields that people know from elsewhere, and their equivalents here."""


def faults_of(fault: Fault, model: type[BaseModel] | None = None, where: FieldPath = ()) -> list[FieldFault]:
    """The fault in our words; of a part that was read by itself each of that part's own faults.

    `model`: the model of the data, which knows its fields; `where`: the path of the whole.
    """
    cause = getattr(fault.get("ctx", {}).get("error"), "__cause__", None)
    if isinstance(cause, InvalidInputError) and cause.faults:
        above = (*where, *fault["loc"][:-1])
        return [FieldFault((*above, *inner.path), inner.what) for inner in cause.faults]
    return [fault_of(fault, model, where)]


def fault_of(fault: Fault, model: type[BaseModel] | None = None, where: FieldPath = ()) -> FieldFault:
    """E.g. "policy.spec.surge: there is no such field; did you mean max_surge?"."""
    path = (*where, *fault["loc"])
    match path, fault["input"]:
        case (*above, _, "[key]"), str(name):
            return FieldFault((*above, name), _what(fault, model))
        case (*above, _, "[key]"), name:
            return FieldFault((*above,), _name_in_words(name))
    return FieldFault(path, _what(fault, model))


def _name_in_words(name: object) -> str:
    """The fault of a name that YAML reads as another type: its spelling in the file is lost."""
    match name:
        case bool():
            spelling = ("NO, OFF and FALSE", "YES, ON and TRUE")[name]
            return f"a name is {name}, which YAML makes of {spelling}: put it in quotes"
        case _:
            return f"the name {name} must be text: put it in quotes, as in '{name}'"


def _what(fault: Fault, model: type[BaseModel] | None) -> str:
    match fault["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden" | "unexpected_keyword_argument":
            return f"there is no such field{_instead(fault['loc'], model)}"
        case "too_long" | "too_short" | "string_too_short" as kind:
            return _of_length(kind, **fault["ctx"])
        case "model_type" | "dataclass_type":
            return f"must be {_FIELDS}{_fields_at(fault, model)}"
        case "float_parsing" | "int_parsing" | "int_type" if _is_a_text_for_seconds(fault):
            return "must be a number of seconds, without a unit, such as 10"
        case "string_type" if isinstance(fault["input"], (int, float)):
            return "must be text; put it in quotes"
        case "string_pattern_mismatch" if sentence := _PATTERNS.get(fault["ctx"]["pattern"]):
            return sentence
        case kind if right := _RIGHT.get(kind):
            context = fault.get("ctx", {}).items()
            values = {name: format(part, ".15g") if name in _BOUNDS else part for name, part in context}
            return f"must be {right.format(**values)}"
        case "value_error" | "assertion_error":
            return str(fault["msg"]).partition(", ")[2]
    return "is no value that this field takes"


def _is_a_text_for_seconds(fault: Fault) -> bool:
    return isinstance(fault["input"], str) and str(("", *fault["loc"])[-1]).endswith("_seconds")


def _of_length(kind: str, **bounds: Any) -> str:  # noqa: ANN401  (as Pydantic tells them)
    """E.g. "has 1000 items, and 500 are the most"."""
    match kind, bounds:
        case "too_long", {"max_length": most, "actual_length": int(count)}:
            return f"has {number_of(count, 'item')}, and {most} are the most"
        case "too_long", {"max_length": most}:
            return f"has more than {number_of(most, 'item')}, which are the most"
        case "too_short", {"min_length": least, "actual_length": int(count)} if count:
            return f"has {number_of(count, 'item')}, and {least} are the least"
        case "string_too_short", {"min_length": least} if least > 1:
            return f"must be at least {least} characters long"
    return "must not be empty"


def _fields_at(fault: Fault, model: type[BaseModel] | None) -> str:
    """A text in place of fields is meant for the first needed field, or for the first: the path of a health check."""
    section = model and _section(model, fault["loc"])
    if section is None:
        return ""
    fields = list(section.__pydantic_fields__)
    first = next((name for name, field in section.__pydantic_fields__.items() if field.is_required()), fields[0])
    example = f", such as {{{first}: {fault['input']}}}" if isinstance(fault["input"], str) else ""
    return f"{example}; the fields are {', '.join(fields)}"


def _instead(path: Sequence[int | str], model: type[BaseModel] | None) -> str:
    section = model and _section(model, path[:-1])
    if section is None:
        return ""
    names = list(section.__pydantic_fields__)
    if hint := _MEANT.get(str(path[-1])):
        return f"; {hint}"
    close = difflib.get_close_matches(str(path[-1]), names, 1)
    return f"; did you mean {close[0]}?" if close else f"; the fields are {', '.join(names)}"


def _section(model: Any, path: Sequence[int | str]) -> Any:  # noqa: ANN401 -- as `models_in`
    """The model of the fields at this path; None if they may have any name."""
    for part in path:
        if isinstance(part, int):  # an element of the list before
            continue
        field = model.__pydantic_fields__.get(part)
        inner = next(models_in(field.annotation), None) if field else None
        if inner is None:
            return None
        model = inner
    return model


def models_in(annotation: Any) -> Iterator[Any]:  # noqa: ANN401 -- any type
    """The models of Pydantic's, and its dataclasses, that a value of this type may be."""
    if hasattr(annotation, "__pydantic_fields__"):
        yield annotation
    for part in get_args(annotation):
        yield from models_in(part)


@cache
def meanings(model: Any) -> dict[str, str]:  # noqa: ANN401 -- a model of Pydantic's, or a dataclass of Pydantic's
    """The docstring under each field, in one line; a subclass's docstring for the same field wins."""
    docstrings: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if hasattr(kind, "__pydantic_fields__") and kind is not BaseModel:
            docstrings |= dict(_docstrings(kind))
    return {name: text for name, text in docstrings.items() if name in model.__pydantic_fields__}


def _docstrings(kind: type) -> Iterator[tuple[str, str]]:
    match ast.parse(inspect.cleandoc("\n" + inspect.getsource(kind))).body:
        case [ast.ClassDef(body=body)]:
            for field, below in pairwise(body):
                match field, below:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        yield name, " ".join(text.split())
