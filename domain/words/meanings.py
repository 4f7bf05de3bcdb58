"""The meaning of each field of a Pydantic model: the docstring below it."""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from pydantic import BaseModel


@cache
def meanings(model: type[BaseModel]) -> dict[str, str]:
    """The docstring under each field, in one line; a field that a model says anew takes its own."""
    said: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if issubclass(kind, BaseModel) and kind is not BaseModel:
            said |= dict(_docstrings(kind))
    return {name: text for name, text in said.items() if name in model.model_fields}


def _docstrings(kind: type) -> Iterator[tuple[str, str]]:
    match ast.parse(inspect.cleandoc("\n" + inspect.getsource(kind))).body:
        case [ast.ClassDef(body=body)]:
            for field, below in pairwise(body):
                match field, below:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                        yield name, " ".join(text.split())
