"""Pydantic's faults as sentences with the field's path, and the meaning of each field."""

import ast
import difflib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, get_args

from pydantic import BaseModel

from domain.text.storable import DEPLOYMENT_NAME_PATTERN, NAME_PATTERN

Fault = Mapping[str, Any]
"""As Pydantic lists it: "type", "loc", "msg", "input", "ctx"."""

_PATTERNS = {
    NAME_PATTERN: "must be lower-case letters, digits, '-' and '.', 63 at most",
    DEPLOYMENT_NAME_PATTERN: "must be lower-case letters, digits, '-' and '.', 54 at most",
    "^/": "must begin with '/', such as /health",
    "^[A-Za-z0-9 ._~/+:@%=-]*$": "must be letters, digits, blanks and . _ ~ / + : @ % = - only",
}

_RIGHT = {
    "int_type": "a whole number, such as 3",
    "int_parsing": "a whole number, such as 3",
    "int_from_float": "a whole number, such as 3",
    "float_type": "a number, such as 1.5",
    "float_parsing": "a number, such as 1.5",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "dict_type": "names, each with its value, such as {{NAME: value}}",
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


def sentence_of(fault: Fault, model: type[BaseModel] | None = None, where: str = "") -> str:
    """`model`: the model of the data, which knows its fields; `where`: the path of the whole.

    "policy.spec.surge: there is no such field; did you mean max_surge?"
    """
    if fault["loc"][-1:] == ("[key]",) and not isinstance(fault["input"], str):
        return f"{path_of({'loc': fault['loc'][:-2]}, where)}: {_name_in_words(fault['input'])}"
    path = path_of(fault, where)
    what = _what(fault, model)
    return f"{path}: {what}" if path else what


def _name_in_words(name: object) -> str:
    """For a name that YAML reads as another type: its spelling in the file is lost."""
    match name:
        case bool():
            spelling = ("NO, OFF and FALSE", "YES, ON and TRUE")[name]
            return f"a name is {name}, which YAML makes of {spelling}: put it in quotes"
        case _:
            return f"the name {name} must be text: put it in quotes, as in '{name}'"


def path_of(fault: Fault, where: str = "") -> str:
    """The path of the field, such as "revision.env"; empty for the whole."""
    return ".".join(str(part) for part in (where, *fault["loc"]) if part != "")


def _what(fault: Fault, model: type[BaseModel] | None) -> str:
    match fault["type"]:
        case "extra_forbidden":
            return f"there is no such field{_instead(fault['loc'], model)}"
        case "missing":
            return "is missing"
        case "tuple_type" | "list_type":
            return "must be a list"
        case "model_type":
            return f"must be fields, each with its value{_fields_at(fault, model)}"
        case "float_parsing" | "int_parsing" if path_of(fault).endswith("_seconds"):
            return "must be a number of seconds, without a unit, such as 10"
        case "string_type" if isinstance(fault["input"], (int, float)):
            return "must be text; put it in quotes"
        case "string_pattern_mismatch" if sentence := _PATTERNS.get(fault["ctx"]["pattern"]):
            return sentence
        case kind if right := _RIGHT.get(kind):
            context = fault.get("ctx", {}).items()
            bounds = {name: format(bound, ".15g") for name, bound in context if name in _BOUNDS}
            return f"must be {right.format(**bounds)}"
    message = str(fault["msg"])
    own = message.removeprefix("Value error, ")
    if own != message:
        return own
    should = message.removeprefix("Input should ")
    return f"must {should}" if should != message else f"{message[0].lower()}{message[1:]}"


def _fields_at(fault: Fault, model: type[BaseModel] | None) -> str:
    """A text in place of fields is meant for the first field, such as the path of a health check."""
    section = model and _section(model, fault["loc"])
    if section is None:
        return ""
    fields = list(section.model_fields)
    example = f", such as {{{fields[0]}: {fault['input']}}}" if isinstance(fault["input"], str) else ""
    return f"{example}; the fields are {', '.join(fields)}"


def _instead(path: Sequence[int | str], model: type[BaseModel] | None) -> str:
    section = model and _section(model, path[:-1])
    if section is None:
        return ""
    names = list(section.model_fields)
    if hint := _MEANT.get(str(path[-1])):
        return f"; {hint}"
    close = difflib.get_close_matches(str(path[-1]), names, 1)
    return f"; did you mean {close[0]}?" if close else f"; the fields are {', '.join(names)}"


def _section(model: type[BaseModel], path: Sequence[int | str]) -> type[BaseModel] | None:
    """The model of the fields at this path; None if they may have any name."""
    for part in path:
        if isinstance(part, int):  # an element of the list before
            continue
        field = model.model_fields.get(part)
        inner = next(_models_in(field.annotation), None) if field else None
        if inner is None:
            return None
        model = inner
    return model


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


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
