"""The description is one that other people's tools take: valid, in JSON's words, each model once and by its name."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator, validate

from api.people.resources.openapi import Components, openapi

KEYWORDS = re.compile(
    r"type|properties|required|items|prefixItems|anyOf|oneOf|allOf|not|enum|const|default|title|description|examples?"
    r"|format|pattern|minimum|maximum|exclusiveMinimum|exclusiveMaximum|multipleOf|minLength|maxLength|minItems"
    r"|maxItems|uniqueItems|additionalProperties|patternProperties|propertyNames|minProperties|maxProperties"
    r"|discriminator|\$ref|x-.+"
)


def schemas(part: Any) -> Iterator[dict[str, Any]]:
    """Every schema, those in schemas too."""
    match part:
        case {"schema": dict(schema), **rest}:
            yield from within(schema)
            yield from schemas(rest)
        case {"schemas": dict(named), **rest}:
            for schema in named.values():
                yield from within(schema)
            yield from schemas(rest)
        case dict():
            for each in part.values():
                yield from schemas(each)
        case list():
            for each in part:
                yield from schemas(each)


def within(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    inner = [schema[name] for name in ("items", "additionalProperties", "propertyNames") if name in schema]
    listed = [each for name in ("anyOf", "oneOf", "allOf", "prefixItems") for each in schema.get(name, ())]
    for each in (*inner, *listed, *schema.get("properties", {}).values()):
        if isinstance(each, dict):
            yield from within(each)


def operations() -> Iterator[dict[str, Any]]:
    for methods in openapi()["paths"].values():
        yield from methods.values()


def test_it_is_valid_and_says_where_it_is_served() -> None:
    validate(dict(openapi()), cls=OpenAPIV31SpecValidator)
    assert openapi()["servers"]


def test_every_word_of_a_schema_is_one_of_json_schemas() -> None:
    found = list(schemas(dict(openapi())))
    assert len(found) > 500
    assert {word for schema in found for word in schema if not KEYWORDS.fullmatch(word)} == set()


def test_no_operation_is_called_as_another_one() -> None:
    names = [operation["operationId"] for operation in operations()]
    assert sorted(names) == sorted(set(names))
    assert all(name.isidentifier() for name in names)


def test_every_answer_and_every_body_is_a_model_with_a_name() -> None:
    for operation in operations():
        for told in (operation.get("requestBody", {}), *operation["responses"].values()):
            for kind, content in told.get("content", {}).items():
                assert kind == "text/event-stream" or "$ref" in content["schema"], operation["operationId"]


def test_what_is_said_for_people_has_no_word_of_pythons() -> None:
    said = [schema["description"] for schema in schemas(dict(openapi())) if "description" in schema]
    said += [each[words] for each in operations() for words in ("summary", "description") if words in each]
    assert len(said) > 300
    assert [text for text in said if re.search(r"\b(None|True|False|dict|tuple|str)\b", text)] == []


def test_two_models_of_one_name_are_refused() -> None:
    components = Components()
    components.put("Size", {"type": "integer"})
    with pytest.raises(ValueError, match="Size is two models"):
        components.put("Size", {"type": "string"})
