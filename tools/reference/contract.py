"""The page about what programs may rely on: a line for each path and each task, which changes when its form does."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from api.people.resources.openapi import openapi
from tools.reference.markdown import page, table
from tools.reference.tasks import tasks_document

_NO_FORM = {"title", "description", "summary", "example", "$defs"}


def contract_page() -> str:
    """What docs/reference/contract.md holds."""
    return page(
        "The contract",
        "What programs may rely on. A fingerprint is another one when a field, its type, a limit or a status changes; "
        "words for people are left out.\n"
        "The whole of it: the server for people shows its OpenAPI description at `/openapi.json`, and `make reference` "
        "writes that\nand the JSON Schema of all tasks into `build/reference/`.",
        "## Over HTTP\n\n" + table(("request", "role", "asked with", "body", "answers", "fingerprint"), _paths()),
        "## By a task\n\n" + table(("task", "payload", "`result`", "fingerprint"), _tasks()),
    )


def _paths() -> Iterator[list[str]]:
    document = openapi()
    for path, methods in document["paths"].items():
        for method, said in methods.items():
            whole = inlined(said, document["components"]["schemas"])
            role = re.search(r"role (\w+)", said.get("description", ""))
            asked = [f"`{parameter['name']}`" for parameter in whole.get("parameters", ())]
            contents = whole.get("requestBody", {"content": {"": {}}})["content"].values()
            answers = ", ".join(whole["responses"])
            request = f"`{method.upper()} {path}`"
            yield [
                request,
                role[1] if role else "",
                ", ".join(asked),
                ", ".join(_fields(content.get("schema", {})) for content in contents),
                answers,
                fingerprint(whole),
            ]


def _tasks() -> Iterator[list[str]]:
    for name, task in tasks_document()["tasks"].items():
        payload, result = (inlined(task.get(part, {}), task.get(part, {}).get("$defs", {})) for part in _PARTS)
        yield [f"`{name}`", _fields(payload), _fields(result), fingerprint([payload, result])]


_PARTS = ("payload", "result")


def _fields(schema: Mapping[str, Any]) -> str:
    """The names of the fields; required ones have a star."""
    required = schema.get("required", ())
    return ", ".join(f"`{name}`{'*' if name in required else ''}" for name in schema.get("properties", ()))


def inlined(schema: Any, schemas: Mapping[str, Any], within: tuple[str, ...] = ()) -> Any:  # noqa: ANN401  (JSON)
    """The schema without words for people, and with what it refers to in place of each reference."""
    if isinstance(schema, list):
        return [inlined(part, schemas, within) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return {"again": name} if name in within else inlined(schemas[name], schemas, (*within, name))
    return {
        name: {field: inlined(of, schemas, within) for field, of in part.items()}  # a field may be called "title"
        if name == "properties"
        else inlined(part, schemas, within)
        for name, part in schema.items()
        if name not in _NO_FORM
    }


def fingerprint(form: object) -> str:
    """Eight letters and digits that differ where the form does."""
    return f"`{hashlib.sha256(json.dumps(form, sort_keys=True).encode()).hexdigest()[:8]}`"
